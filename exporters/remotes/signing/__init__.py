"""Signatures and bills of materials of exports, in standard formats."""
