"""What somebody can achieve who knows the method: attacks, measured against defences."""
