"""ONNX Runtime's CUDA provider on a machine without a GPU: which kernels it has, and where it places nodes.

The provider decides both before it computes anything. It is the real one, from the installed onnxruntime-gpu; what it asks of
the CUDA libraries until then is answered by ``runtime.c``, whose device memory is ordinary memory. Nothing is ever computed.
"""
