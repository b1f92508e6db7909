"""What ``fit`` and ``audit`` do with ``--engine dask``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sourcewise.cli.fitting_options import FittingOptions, Place
from sourcewise.cli.output import check_outside

if TYPE_CHECKING:
    from sourcewise.audit import Audit, Settings
    from sourcewise.engines.dask.table_sources import TableSources
    from sourcewise.tables.model import TableModel

ONLY_ON_CLUSTER = "{option} is for --engine dask; add that, or leave it out."
TLS_TOGETHER = "--tls-ca, --tls-cert and --tls-key go together; give all three."
TLS_NEEDS_SCHEDULER = "--tls-ca, --tls-cert and --tls-key are for a --scheduler."
NO_TLS_FILE = "There is no file {path}, which {option} names."


def on_cluster(given: FittingOptions) -> bool:
    """Whether the rows are on a cluster; checks the options that are about one."""
    files = {"--tls-ca": given.tls_ca, "--tls-cert": given.tls_cert, "--tls-key": given.tls_key}
    if given.engine is not Place.dask:
        for option, value in {
            "--scheduler": given.scheduler, "--resume": given.resume, **files
        }.items():  # fmt: skip
            if value is not None:
                raise ValueError(ONLY_ON_CLUSTER.format(option=option))
        return False
    if given.resume is not None:
        check_outside(given.resume, given.data)
    if any(files.values()):
        if given.scheduler is None:
            raise ValueError(TLS_NEEDS_SCHEDULER)
        if not all(files.values()):
            raise ValueError(TLS_TOGETHER)
        for option, path in files.items():
            if path is not None and not path.is_file():
                raise ValueError(NO_TLS_FILE.format(path=path, option=option))
    return True


@contextmanager
def sources_on_cluster(given: FittingOptions) -> Iterator[TableSources]:
    """Connect to the cluster, or start one, and take the table there."""
    from sourcewise.engines.dask.sources import check_installed
    from sourcewise.engines.dask.table_sources import TableSources

    check_installed()
    request = given.table_request()
    with _client(given) as client, TableSources(request, client, given.resume) as sources:
        yield sources


def fit_on_cluster(sources: TableSources, settings: Settings) -> TableModel:
    """Fit a model to the table."""
    from sourcewise.audit.on_cluster import fit_on_cluster

    return fit_on_cluster(sources, settings)


def audit_on_cluster(
    sources: TableSources, settings: Settings, facts: dict[str, str]
) -> tuple[Audit, TableModel]:
    """Audit the table."""
    from sourcewise.audit.on_cluster import audit_on_cluster

    return audit_on_cluster(sources, settings, facts)


def _client(given: FittingOptions) -> Any:
    from sourcewise.engines.dask.cluster import Tls, connected, local_cluster

    if given.scheduler is None:
        return local_cluster()
    if given.tls_ca is None or given.tls_cert is None or given.tls_key is None:
        return connected(given.scheduler)
    return connected(given.scheduler, Tls(given.tls_ca, given.tls_cert, given.tls_key))
