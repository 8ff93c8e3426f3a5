"""Interprets the PTX of kernels, one thread after the other: the subset of instructions that NVRTC makes of kernel.cu.

Semantics are those of NVIDIA's PTX ISA. Registers hold Python ints (bits, unsigned) or floats (f32). Accesses outside an
allocation or not aligned to their size raise `MemoryFault`; an instruction that is not known raises `KeyError`.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import re
import struct
from dataclasses import dataclass

_libm = ctypes.CDLL(ctypes.util.find_library("m"))
_libm.fmaf.restype, _libm.fmaf.argtypes = ctypes.c_float, [ctypes.c_float] * 3
#: f32 fused multiply-add.
fma = _libm.fmaf


def bits_of(value: float) -> int:
    """Returns the bits of an f32."""
    return struct.unpack("<I", struct.pack("<f", value))[0]


def half_bits(value: float) -> int:
    """Returns the bits of an f32 as f16, rounded to nearest even."""
    return struct.unpack("<H", struct.pack("<e", value))[0]


class MemoryFault(Exception):
    """An access outside an allocation, or one that is not aligned."""


class Memory:
    """Allocations with gaps between them."""

    def __init__(self) -> None:
        self._allocations: list[tuple[int, bytearray]] = []
        self._next = 1 << 32

    def allocate(self, contents: bytes) -> tuple[int, bytearray]:
        """Returns the address of memory with these contents, and its bytes."""
        address, memory = self._next, bytearray(contents)
        self._allocations.append((address, memory))
        self._next += len(contents) // 4096 * 4096 + 2 * 4096
        return address, memory

    def _find(self, address: int, size: int, alignment: int) -> tuple[bytearray, int]:
        for start, memory in self._allocations:
            if start <= address and address + size <= start + len(memory) and address % alignment == 0:
                return memory, address - start
        raise MemoryFault(f"{size} bytes at {address:#x}, aligned to {alignment}")

    def read(self, address: int, size: int) -> int:
        memory, at = self._find(address, size, size)
        return int.from_bytes(memory[at : at + size], "little")

    def write(self, address: int, size: int, values: list[int]) -> None:
        """Stores a vector, which is aligned to its whole size."""
        memory, at = self._find(address, size * len(values), size * len(values))
        memory[at : at + size * len(values)] = b"".join(value.to_bytes(size, "little") for value in values)


@dataclass
class Kernel:
    """An entry point."""

    parameters: list[str]
    #: Negated predicate?, predicate or None, parts of the opcode, operands.
    instructions: list[tuple[bool, str | None, list[str], list[str]]]
    #: The number of the instruction after each label.
    labels: dict[str, int]


def parse(ptx: str) -> dict[str, Kernel]:
    """Returns the entry points of a module."""
    kernels = {}
    ptx = re.sub(r"//.*", "", ptx)
    for name, head, body in re.findall(r"\.visible \.entry (\w+)\((.*?)\)[^{]*\{(.*?)\n\}", ptx, re.DOTALL):
        kernel = Kernel(re.findall(r"\.param \.\w+ (\w+)", head), [], {})
        # Inline assembly is in braces.
        body = re.sub(r"\.reg[^;]*;|[{}](?=\s*\n)", "", body)
        for statement in body.split(";"):
            statement = statement.strip()
            while label := re.match(r"(\$\w+):\s*", statement):
                kernel.labels[label[1]] = len(kernel.instructions)
                statement = statement[label.end() :]
            if statement:
                negated, predicate, opcode, operands = re.match(
                    r"(?:@(!?)(%p\d+)\s+)?([\w.]+)\s*(.*)$", statement, re.DOTALL
                ).groups()
                operands = re.findall(r"\[[^\]]*\]|\{[^}]*\}|[^,\s]+", operands)
                kernel.instructions.append((bool(negated), predicate, opcode.split("."), operands))
        kernels[name] = kernel
    return kernels


def _signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


def _permute(a: int, b: int, selector: int) -> int:
    source = (a | b << 32).to_bytes(8, "little")
    return sum(source[selector >> 4 * i & 7] << 8 * i for i in range(4))


def _insert(a: int, b: int, position: int, length: int) -> int:
    field = ((1 << length) - 1) << position
    return b & ~field | a << position & field


_ARITHMETIC = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "mad": lambda a, b, c: a * b + c,
    "div": lambda a, b: a // b,
    "rem": lambda a, b: a % b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "bfi": _insert,
    "prmt": _permute,
    "selp": lambda a, b, predicate: a if predicate else b,
}
_COMPARISONS = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def run_thread(kernel: Kernel, memory: Memory, arguments: list[int | float], special: dict[str, int]) -> None:
    """Runs one thread. `special` has the registers that say which one it is, such as `%tid.x`."""
    parameters = dict(zip(kernel.parameters, arguments, strict=True))
    registers: dict[str, int | float | bool] = dict(special)

    def value(operand: str):
        if operand.startswith("%"):
            return registers[operand]
        return int(operand, 0)

    def address(operand: str) -> int:
        base, offset = re.fullmatch(r"\[(%\w+)(?:\+(-?\d+))?\]", operand).groups()
        return registers[base] + int(offset or 0) & 0xFFFF_FFFF_FFFF_FFFF

    at = 0
    while at < len(kernel.instructions):
        negated, predicate, opcode, operands = kernel.instructions[at]
        at += 1
        if predicate and registers[predicate] == negated:
            continue
        name, kind = opcode[0], opcode[-1]
        if name == "ret":
            return
        if name == "bra":
            at = kernel.labels[operands[0]]
            continue
        if opcode[:2] == ["ld", "param"]:
            registers[operands[0]] = parameters[operands[1][1:-1]]
            continue
        if name == "fma":
            registers[operands[0]] = fma(*map(value, operands[1:]))
            continue
        if opcode == ["and", "pred"]:
            registers[operands[0]] = value(operands[1]) and value(operands[2])
            continue
        width = int(kind[1:])
        mask = (1 << width) - 1
        if name == "ld":
            registers[operands[0]] = memory.read(address(operands[1]), width // 8)
        elif name == "st":
            values = [value(operand.strip()) for operand in operands[1].strip("{}").split(",")]
            values = [bits_of(v) if isinstance(v, float) else v & mask for v in values]
            memory.write(address(operands[0]), width // 8, values)
        elif name in ("mov", "cvta"):
            result = value(operands[1])
            registers[operands[0]] = bits_of(result) if kind == "b32" and isinstance(result, float) else result
        elif name == "cvt":
            result, to = value(operands[1]), opcode[-2]
            match to:
                case "f32":
                    registers[operands[0]] = ctypes.c_float(result).value
                case "f16":
                    registers[operands[0]] = half_bits(result)
                case _:
                    registers[operands[0]] = result & (1 << int(to[1:])) - 1
        elif name == "setp":
            a, b = (value(operand) & mask for operand in operands[1:])
            if kind[0] == "s":
                a, b = _signed(a, width), _signed(b, width)
            registers[operands[0]] = _COMPARISONS[opcode[1]](a, b)
        else:
            # Bits are kept unsigned. `wide` multiplies u32 to u64.
            result = _ARITHMETIC[name](*(v if isinstance(v := value(o), bool) else v & mask for o in operands[1:]))
            registers[operands[0]] = result if "wide" in opcode else result & mask
