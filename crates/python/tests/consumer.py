"""A consumer of DLPack and of the CUDA array interface, in ctypes. Programs that tests run on a device import it."""

import ctypes

import numpy as np

_cuda = ctypes.CDLL("libcuda.so.1")
_python = ctypes.pythonapi
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_GetName.restype = ctypes.c_char_p
_python.PyCapsule_GetName.argtypes = [ctypes.py_object]
_python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Tensor(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    """`DLManagedTensor`."""

    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    """`DLManagedTensorVersioned`."""

    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


#: numpy types by DLPack's code and bits. numpy has no bfloat16: its bits are read as u16.
TYPES = {(kind, 8 * n): f"<{letter}{n}" for kind, letter in enumerate("iuf") for n in (1, 2, 4, 8) if (kind, n) != (2, 1)}
TYPES |= {(4, 16): "<u2", (6, 8): "?"}

_NEW, _OLD = b"dltensor_versioned", b"dltensor"


class Taken:
    """An array taken through DLPack, until `release`."""

    def __init__(self, array, **arguments):
        capsule = array.__dlpack__(**arguments)
        name = _python.PyCapsule_GetName(capsule)
        self.managed = _python.PyCapsule_GetPointer(capsule, name)
        # The consumer that renames the capsule owns the tensor, so the capsule may be deleted.
        used = {_NEW: b"used_dltensor_versioned", _OLD: b"used_dltensor"}[name]
        _python.PyCapsule_SetName(capsule, used)
        self._used = used
        self.struct = (Versioned if name == _NEW else Managed).from_address(self.managed)
        self.versioned = name == _NEW
        tensor = self.struct.tensor
        self.data = tensor.data + tensor.byte_offset
        self.device = (tensor.device_type, tensor.device_id)
        self.shape = tuple(tensor.shape[: tensor.ndim])
        self.strides = tuple(tensor.strides[: tensor.ndim])
        self.type = TYPES[tensor.code, tensor.bits]

    def release(self):
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.struct.deleter)(self.managed)


def _ok(answer):
    assert answer == 0, answer


class Context:
    """The primary context of a device, current on this thread."""

    def __init__(self, ordinal=0):
        self.ordinal = ordinal
        _ok(_cuda.cuInit(0))
        handle = ctypes.c_void_p()
        _ok(_cuda.cuDevicePrimaryCtxRetain(ctypes.byref(handle), ordinal))
        _ok(_cuda.cuCtxSetCurrent(handle))

    def stream(self):
        handle = ctypes.c_void_p()
        _ok(_cuda.cuStreamCreate(ctypes.byref(handle), 1))
        return handle.value

    def fetch(self, address, shape, element, stream):
        """Copies an array to the host, queued on `stream`."""
        host = np.zeros(shape, element)
        to, bytes_ = ctypes.c_void_p(host.ctypes.data), ctypes.c_size_t(host.nbytes)
        _ok(_cuda.cuMemcpyDtoHAsync_v2(to, ctypes.c_uint64(address), bytes_, ctypes.c_void_p(stream)))
        _ok(_cuda.cuStreamSynchronize(ctypes.c_void_p(stream)))
        return host

    def close(self, *streams):
        for stream in streams:
            _ok(_cuda.cuStreamDestroy_v2(ctypes.c_void_p(stream)))
        _ok(_cuda.cuDevicePrimaryCtxRelease_v2(self.ordinal))


def read(array, context, stream=1):
    """Returns the array's values as a numpy array, through DLPack."""
    taken = Taken(array, stream=stream)
    values = context.fetch(taken.data, taken.shape, taken.type, stream)
    taken.release()
    return values
