"""The kernels of execution providers, the placement of a graph's nodes, and widening of nodes without a kernel."""
