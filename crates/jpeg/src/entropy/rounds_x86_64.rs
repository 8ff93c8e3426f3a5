//! The loop of [`super::decode`] in assembly, for x86-64 with BMI1, BMI2 and MOVBE.
//!
//! It does what [`rounds`](super::lookup::rounds) does, in two thirds of the instructions: all that a lookup changes of three
//! streams is in registers; the flags of the addition of an entry to the counts say whether the block is complete (sign) and
//! whether the lookup cannot be used (carry; see [`Bmi2::rounds`] for other cases); a code whose magnitude does not fit into the
//! lookup is decoded without leaving the loop. A compiler spills registers in the whole loop for the sake of such rare code.
//!
//! The loop calls nothing, and nothing unwinds through it, so it has no unwind information. The names of its macros have a prefix,
//! because all assembly that is linked at once shares them.
//!
//! | registers of streams 0, 1 and 2 | contents |
//! |---|---|
//! | `r8`, `r11`, `r14` | the next bits |
//! | `rax`, `rbx`, `rdx` | the counts |
//! | `r9`, `r12`, `r15` | the table |
//! | `r10`, `r13`, `rbp` | the block |
//!
//! `rcx` is the table of natural indices; `rsi` and `rdi` are temporary. The inputs and the limits of all streams are on the stack.

use std::arch::naked_asm;
use std::mem::offset_of;

use super::block::Block;
use super::lookup::{Limits, LookupState, MAX_CONSUMED, MAX_LOOKUPS, NATURAL_INDEX, Rounds, UNUSABLE};
use crate::cpu::Bmi2;
use crate::huffman::coefficient_table::{COUNTS_MARK, LOOKUP_BITS};

/// [`NATURAL_INDEX`], with an index inside the block for every count.
static INDEX_IN_BLOCK: [u8; 256] = {
    let mut index = NATURAL_INDEX;
    let mut i = 0;
    while i < index.len() {
        index[i] &= 63;
        i += 1;
    }
    index
};

impl Bmi2 {
    /// Returns the loop. An entry after which a block has too many coefficients cannot be used if it has several symbols, which is
    /// only `checked` on demand: with one symbol it is damage, and applied as [`LookupState::single`] would.
    pub(super) fn rounds<const N: usize>(self, checked: bool) -> Rounds<N> {
        const { assert!(1 <= N && N <= 3, "registers for three streams") };
        const { assert!(MAX_LOOKUPS == 5, "as many as a round makes") };
        // A `Bmi2` exists only if the processor has all instructions that the loop uses (`cpu.rs`).
        if checked { call::<N, true> } else { call::<N, false> }
    }
}

/// # Safety
/// That of [`rounds`].
unsafe fn call<const N: usize, const CHECKED: bool>(all: &mut [LookupState; N], limits: &[Limits; N]) -> usize {
    // SAFETY: the caller's promise.
    unsafe { rounds::<N, CHECKED>(all, limits) }
}

/// The loop, with the arguments and the result of [`rounds`](super::lookup::rounds).
///
/// # Safety
/// The invariants of [`super::decode`] must hold, and the processor have BMI1, BMI2 and MOVBE.
// Each run of rustfmt would indent the string further.
#[rustfmt::skip]
#[unsafe(naked)]
unsafe extern "sysv64" fn rounds<const N: usize, const CHECKED: bool>(
    all: &mut [LookupState; N],
    limits: &[Limits; N],
) -> usize {
    naked_asm!(
        r"
# Expands `part` with the number and the registers of a stream: bits, counts (64, 32 and 16 bits, second and first byte), table, block.
.macro jpeg_stream part, i
.if \i == 0
    \part 0, r8, rax, eax, ax, ah, al, r9, r10
.elseif \i == 1
    \part 1, r11, rbx, ebx, bx, bh, bl, r12, r13
.else
    \part 2, r14, rdx, edx, dx, dh, dl, r15, rbp
.endif
.endm

.macro jpeg_each_stream part
    jpeg_stream \part, 0
.if {n} > 1
    jpeg_stream \part, 1
.endif
.if {n} > 2
    jpeg_stream \part, 2
.endif
.endm

# On the stack: the states' address, and for each stream its input, and the limits of input and block.

.macro jpeg_load i, bits, c64, c32, c16, second, first, table, block
    mov \table, [rsi + {limit} * \i + {limit_input}]
    mov \block, [rsi + {limit} * \i + {limit_block}]
    mov [rsp + 24 * \i + 16], \table
    mov [rsp + 24 * \i + 24], \block
    mov \bits, [rdi + {state} * \i + {state_input}]
    mov [rsp + 24 * \i + 8], \bits
    mov \table, [rdi + {state} * \i + {state_table}]
    mov \block, [rdi + {state} * \i + {state_block}]
    mov \c32, [rdi + {state} * \i + {state_counts}]
.endm

.macro jpeg_store i, bits, c64, c32, c16, second, first, table, block
    mov \bits, [rsp + 24 * \i + 8]
    mov [rdi + {state} * \i + {state_input}], \bits
    mov [rdi + {state} * \i + {state_table}], \table
    mov [rdi + {state} * \i + {state_block}], \block
    mov [rdi + {state} * \i + {state_counts}], \c32
.endm

# Loads the bits. Leaves the address of their first byte in `rsi`, and does not change the state yet.
.macro jpeg_load_bits temporary, i, bits, c64, c32, c16, second, first, table, block
    mov \temporary, [rsp + 24 * \i + 8]
    mov esi, \c32
    shr esi, 3
    and esi, 15
    movbe \bits, [\temporary + rsi]
    add rsi, \temporary
.endm

# Completes a refill from `rsi`.
.macro jpeg_refill i, bits, c64, c32, c16, second, first, table, block
    mov [rsp + 24 * \i + 8], rsi
    and \c32, {keep}
    mov [\block + {block_input}], rsi
    shlx \bits, \bits, \c64
.endm

.macro jpeg_begin_round i, bits, c64, c32, c16, second, first, table, block
    jpeg_load_bits rdi, \i, \bits, \c64, \c32, \c16, \second, \first, \table, \block
    cmp rsi, [rsp + 24 * \i + 16]
    ja 6f
    cmp \block, [rsp + 24 * \i + 24]
    jae 6f
    jpeg_refill \i, \bits, \c64, \c32, \c16, \second, \first, \table, \block
.endm

# Completes a lookup: `rdi` has the value, and the sign flag is set if the block is complete.
.macro jpeg_next_coefficient bits, c64, c32, c16, second, first, table, block
    mov [\block + 2 * rsi + {block_coefs}], di
    mov [\block + {block_counts}], \c16
    lea rsi, [\block + {block}]
    movzx edi, \first
    cmovs \c32, edi
    cmovs \block, rsi
.endm

.macro jpeg_check_bits i, bits, c64, c32, c16, second, first, table, block
    cmp \first, {max_consumed}
    ja 2b
.endm

.macro jpeg_look_up i, bits, c64, c32, c16, second, first, table, block
    mov rsi, \bits
    shr rsi, {unused_bits}
    mov edi, [\table + 4 * rsi]
    add \c16, di
    jc 3\i\()f
.if {checked}
    movzx esi, \second
    movzx esi, byte ptr [rcx + rsi]
    cmp esi, {unusable}
    je 3\i\()f
    test \c16, \c16
.endif
    mov \table, [\block + {block_ac}]
    shlx \bits, \bits, rdi
    cmovs \table, [\block + {block_next_dc}]
.if !{checked}
    movzx esi, \second
    movzx esi, byte ptr [rcx + rsi]
.endif
    rorx edi, edi, 16
    jpeg_next_coefficient \bits, \c64, \c32, \c16, \second, \first, \table, \block
.endm

# Undoes a lookup that cannot be used. If its entry is `length << 8 | symbol`, decodes the symbol; otherwise leaves the loop.
.macro jpeg_miss i, bits, c64, c32, c16, second, first, table, block
3\i:
    sub \c16, di
    jpeg_load_bits rcx, \i, \bits, \c64, \c32, \c16, \second, \first, \table, \block
    jpeg_refill \i, \bits, \c64, \c32, \c16, \second, \first, \table, \block
    test dil, 0x7f
    jnz 4f
    shr edi, 16
    jz 4f
    mov esi, edi
    shr esi, 8
    mov ecx, edi
    and ecx, 15
    # The bits after the code, and their number. A coefficient counts two, as do the zeros before it.
    shlx \table, \bits, rsi
    add esi, ecx
    and edi, 0xf0
    shl edi, 5
    lea edi, [rdi + rsi + 0x200]
    add \c16, di
    # The magnitude, less 2^n - 1 if its first bit is 0.
    mov edi, -1
    bzhi edi, edi, ecx
    mov rsi, \table
    sar rsi, 63
    andn esi, esi, edi
    neg ecx
    shrx rdi, \table, rcx
    sub edi, esi
    lea rcx, [rip + {index_in_block}]
    movzx esi, \second
    movzx esi, byte ptr [rcx + rsi]
    mov \table, [\block + {block_ac}]
    test \c16, \c16
    cmovs \table, [\block + {block_next_dc}]
    jpeg_next_coefficient \bits, \c64, \c32, \c16, \second, \first, \table, \block
    jmp 5b
4:
    mov esi, \i
    jmp 7f
.endm

    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    sub rsp, 80
    mov [rsp], rdi
    jpeg_each_stream jpeg_load
5:
.if {checked}
    lea rcx, [rip + {natural_index}]
.else
    lea rcx, [rip + {index_in_block}]
.endif
.p2align 6
2:
    jpeg_each_stream jpeg_begin_round
    jpeg_each_stream jpeg_look_up
    jpeg_each_stream jpeg_look_up
    jpeg_each_stream jpeg_look_up
    jpeg_each_stream jpeg_look_up
    jpeg_each_stream jpeg_check_bits
    jpeg_each_stream jpeg_look_up
    jmp 2b
    jpeg_each_stream jpeg_miss
6:
    mov esi, {n}
7:
    mov rdi, [rsp]
    jpeg_each_stream jpeg_store
    mov rax, rsi
    add rsp, 80
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    ret

.purgem jpeg_stream
.purgem jpeg_each_stream
.purgem jpeg_load
.purgem jpeg_store
.purgem jpeg_load_bits
.purgem jpeg_refill
.purgem jpeg_begin_round
.purgem jpeg_next_coefficient
.purgem jpeg_check_bits
.purgem jpeg_look_up
.purgem jpeg_miss
",
        n = const N,
        unused_bits = const 64 - LOOKUP_BITS,
        max_consumed = const COUNTS_MARK + MAX_CONSUMED,
        keep = const !(COUNTS_MARK - 8),
        checked = const CHECKED as u8,
        unusable = const UNUSABLE,
        natural_index = sym NATURAL_INDEX,
        index_in_block = sym INDEX_IN_BLOCK,
        block = const size_of::<Block>(),
        block_coefs = const offset_of!(Block, coefs),
        block_ac = const offset_of!(Block, ac),
        block_next_dc = const offset_of!(Block, next_dc),
        block_input = const offset_of!(Block, input),
        block_counts = const offset_of!(Block, counts),
        state = const size_of::<LookupState>(),
        state_counts = const offset_of!(LookupState, counts),
        state_table = const offset_of!(LookupState, table),
        state_input = const offset_of!(LookupState, input),
        state_block = const offset_of!(LookupState, block),
        limit = const size_of::<Limits>(),
        limit_input = const offset_of!(Limits, input),
        limit_block = const offset_of!(Limits, block),
    )
}
