"""What all figures share: colours, axes, small PNGs. The figures are in the chapters."""
