"""What every peer serves: plain functions over the exported files, a batch at a time. No framework is named here."""
