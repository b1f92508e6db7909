"""Sources whose rows may not leave their owners, asked over Flower."""

from sourcewise.engines.flower.averaging import TrustedFedAvg
from sourcewise.engines.flower.carriers import GridCarrier, LocalCarrier
from sourcewise.engines.flower.client import Site
from sourcewise.engines.flower.policy import Policy, SiteFile, read_site_file
from sourcewise.engines.flower.secure_averaging import secure_average, secure_client_app
from sourcewise.engines.flower.server import RunSettings, run_server, server_app
from sourcewise.engines.flower.sources import FederatedFacts, FlowerSources

__all__ = [
    "FederatedFacts",
    "FlowerSources",
    "GridCarrier",
    "LocalCarrier",
    "Policy",
    "RunSettings",
    "Site",
    "SiteFile",
    "TrustedFedAvg",
    "read_site_file",
    "run_server",
    "secure_average",
    "secure_client_app",
    "server_app",
]
