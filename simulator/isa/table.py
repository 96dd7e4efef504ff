"""The instruction table: one row per base opcode, sm_80 to sm_120: name, pipe class, meaning.

A row "BASE.MODIFIER" overrides its base where a modifier changes the pipe. Pipe classes say which unit executes an
instruction; how long it takes is a chip's business. The classes of the common opcodes follow the profiler's per-pipe
instruction counts (``insts_pipe_*`` of projections/validation/kernels.csv.gz): on 142 kernels, executed opcodes times
membership reproduce the alu, fma, uniform, xu and tensor counts exactly. That shows, among others, that R2UR and ELECT
are alu instructions, that IMAD and VIADD use only the heavy half of the fma pipe where FADD, FMUL and FFMA use both,
that UMOV and ULDC do not use the uniform pipe, and that HFMA2.MMA is counted on the tensor pipe (its issue rate is
nevertheless that of a half-precision fma). Rows that no measured kernel contains follow their documented meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from simulator.errors import Unsupported

PIPES = (
    "none",
    "alu",
    "fma",
    "fma_heavy",
    "fma_half",
    "transcendental",
    "fp64",
    "uniform",
    "shared",
    "shuffle",
    "redux",
    "global",
    "tensor",
    "tensor_async",
    "tensor_memory",
    "bulk_load",
    "bulk_store",
    "bulk_prefetch",
    "bulk_flush",
    "mbarrier",
    "barrier",
    "tensor_wait",
    "tensor_arrive",
    "scoreboard_wait",
    "copy_commit",
    "copy_arrive",
    "branch",
    "exit",
    "constant",
    "uniform_constant",
    "special",
    "fence",
    "cluster_barrier",
    "vote",
)
"""Every pipe class that a row may name."""


@dataclass(frozen=True)
class Opcode:
    """One row: base opcode (or base with one modifier), pipe class, meaning in one line."""

    name: str
    pipe: str
    meaning: str


_ROWS = """
FADD            | fma              | binary32 add
FMUL            | fma              | binary32 multiply
FFMA            | fma              | binary32 fused multiply-add
FADD32I         | fma              | binary32 add, long immediate
FMUL32I         | fma              | binary32 multiply, long immediate
FFMA32I         | fma              | binary32 fused multiply-add, long immediate
FADD2           | fma              | two binary32 adds in a register pair
FMUL2           | fma              | two binary32 multiplies in a register pair
FFMA2           | fma              | two binary32 fused multiply-adds in a register pair
FSWZADD         | fma              | binary32 add of swizzled lanes
IMAD            | fma_heavy        | 32-bit integer multiply-add; also moves and shifts
IMAD.HI         | fma_heavy        | high half of a 64-bit product plus addend, half rate
IMAD.WIDE       | fma_heavy        | 64-bit product of 32-bit factors plus a 64-bit addend
IMAD32I         | fma_heavy        | integer multiply-add, long immediate
IMUL            | fma_heavy        | integer multiply
IDP             | fma_heavy        | integer dot product of packed bytes with accumulation
IDP4A           | fma_heavy        | four-way byte dot product
VIADD           | fma_heavy        | two-operand 32-bit integer add
VIADDMNMX       | alu              | integer add followed by minimum or maximum
HADD2           | fma_half         | two binary16 or bfloat16 adds
HADD2_32I       | fma_half         | two binary16 adds, long immediate
HMUL2           | fma_half         | two binary16 or bfloat16 multiplies
HMUL2_32I       | fma_half         | two binary16 multiplies, long immediate
HFMA2           | fma_half         | two binary16 or bfloat16 fused multiply-adds; also loads constants
HFMA2_32I       | fma_half         | two binary16 fused multiply-adds, long immediate
HSET2           | alu              | compare binary16 pairs into a register
HSETP2          | alu              | compare binary16 pairs into predicates
HMNMX2          | alu              | minimum or maximum of binary16 pairs
VHMNMX          | alu              | three-input minimum or maximum of binary16 pairs
IADD3           | alu              | three-operand 32-bit integer add with carries
IADD            | alu              | two-operand integer add, 32 or 64 bits
IADD32I         | alu              | integer add, long immediate
IABS            | alu              | absolute value of a 32-bit integer
IMNMX           | alu              | minimum or maximum of integers
VIMNMX          | alu              | minimum or maximum of integers
VIMNMX3         | alu              | three-input minimum or maximum of integers
VABSDIFF        | alu              | absolute difference
VABSDIFF4       | alu              | absolute differences of packed bytes
ISETP           | alu              | compare integers into predicates
FSETP           | alu              | compare binary32 into predicates
FSET            | alu              | compare binary32 into a register
FSEL            | alu              | select binary32 by predicate
FMNMX           | alu              | minimum or maximum of binary32
FMNMX3          | alu              | three-input minimum or maximum of binary32
FCHK            | transcendental   | check the operands of a division
SEL             | alu              | select by predicate
LOP3            | alu              | three-input bitwise operation by truth table
LOP             | alu              | two-input bitwise operation
LOP32I          | alu              | bitwise operation, long immediate
PLOP3           | alu              | three-input operation on predicates by truth table
PSETP           | alu              | combine predicates
SHF             | alu              | funnel shift
SHL             | alu              | shift left
SHR             | alu              | shift right
PRMT            | alu              | permute bytes of two registers
LEA             | alu              | shifted add for addresses
SGXT            | alu              | sign- or zero-extend a bit field
BMSK            | alu              | make a bit mask
MOV             | alu              | move
MOV32I          | alu              | move a long immediate
F2FP            | alu              | convert and pack binary32 pairs to narrow types
I2FP            | alu              | 32-bit integer to binary32
F2IP            | alu              | convert binary32 pairs to packed bytes
I2IP            | alu              | pack integers into narrower ones
P2R             | alu              | predicates to register
R2P             | alu              | register to predicates
CS2R            | alu              | clock, zero or another fast special register to a register
MOVM            | transcendental   | transpose an 8x8 matrix across lanes
MUFU            | transcendental   | reciprocal, square root, exponential, logarithm, sine, tanh approximations
F2I             | transcendental   | floating point to integer
I2F             | transcendental   | integer to floating point
F2F             | transcendental   | convert between floating-point widths
FRND            | transcendental   | round to integral value
I2I             | transcendental   | convert integers with saturation
POPC            | transcendental   | count set bits
BREV            | transcendental   | reverse bits
FLO             | transcendental   | find leading one
DADD            | fp64             | binary64 add
DMUL            | fp64             | binary64 multiply
DFMA            | fp64             | binary64 fused multiply-add
DSETP           | fp64             | compare binary64 into predicates
DMNMX           | fp64             | minimum or maximum of binary64
DMMA            | tensor           | binary64 matrix multiply-add of one warp
HMMA            | tensor           | binary16, bfloat16 or TF32 matrix multiply-add of one warp
IMMA            | tensor           | integer matrix multiply-add of one warp
BMMA            | tensor           | one-bit matrix multiply-add of one warp
QMMA            | tensor           | 8-bit floating-point matrix multiply-add of one warp
OMMA            | tensor           | 4-bit floating-point matrix multiply-add of one warp
HGMMA           | tensor_async     | asynchronous warpgroup matrix multiply-add, 16-bit or TF32
QGMMA           | tensor_async     | asynchronous warpgroup matrix multiply-add, 8-bit floating point
IGMMA           | tensor_async     | asynchronous warpgroup matrix multiply-add, integers
BGMMA           | tensor_async     | asynchronous warpgroup matrix multiply-add, one bit
UTCHMMA         | tensor_memory    | matrix multiply-add into tensor memory, 16-bit or TF32
UTCQMMA         | tensor_memory    | matrix multiply-add into tensor memory, 8-bit floating point
UTCOMMA         | tensor_memory    | matrix multiply-add into tensor memory, 4-bit floating point
UTCIMMA         | tensor_memory    | matrix multiply-add into tensor memory, integers
UTCBAR          | tensor_memory    | signal an mbarrier when earlier tensor-memory work completes
UTCCP           | tensor_memory    | copy shared memory to tensor memory
UTCSHIFT        | tensor_memory    | shift rows of tensor memory
UTCATOMSWS      | tensor_memory    | allocate or free tensor-memory columns
LDTM            | tensor_memory    | load from tensor memory
STTM            | tensor_memory    | store to tensor memory
WARPGROUP.ARRIVE | tensor_arrive   | order register writes before an asynchronous matrix multiply
WARPGROUP.DEPBAR | tensor_wait     | wait until at most n asynchronous matrix groups are pending
WARPGROUP       | tensor_arrive    | warpgroup control
WARPGROUPSET    | tensor_arrive    | warpgroup setup
LDS             | shared           | load from shared memory
STS             | shared           | store to shared memory
LDSM            | shared           | load 8x8 matrices from shared memory
STSM            | shared           | store 8x8 matrices to shared memory
ATOMS           | shared           | atomic on shared memory
REDS            | shared           | reduction on shared memory
STAS            | shared           | asynchronous store to another CTA's shared memory
REDAS           | shared           | asynchronous reduction on another CTA's shared memory
LDG             | global           | load from global memory
LD              | global           | load from a generic address
LDL             | global           | load from local memory
STG             | global           | store to global memory
ST              | global           | store to a generic address
STL             | global           | store to local memory
LDGSTS          | global           | copy global to shared memory asynchronously
ATOM            | global           | atomic on a generic address
ATOMG           | global           | atomic on global memory
RED             | global           | reduction on a generic address
REDG            | global           | reduction on global memory
SUATOM          | global           | atomic on a surface
SULD            | global           | load from a surface
SURED           | global           | reduction on a surface
SUST            | global           | store to a surface
TEX             | global           | texture fetch
TLD             | global           | texture load
TLD4            | global           | texture gather
TMML            | global           | texture level of detail
TXD             | global           | texture fetch with derivatives
TXQ             | global           | texture query
MATCH           | shuffle          | find lanes with equal values
SHFL            | shuffle          | exchange values between lanes
REDUX           | redux            | reduce integers over the lanes of a warp
CREDUX          | redux            | reduce over the lanes of a warp into a uniform register
VOTE            | vote             | vote over the lanes of a warp
VOTEU           | vote             | vote over the lanes of a warp into uniform state
ELECT           | alu              | pick one active lane
UTMALDG         | bulk_load        | tensor bulk load to shared memory
UBLKCP          | bulk_load        | linear bulk copy between global and shared memory
UTMASTG         | bulk_store       | tensor bulk store from shared memory
UTMAREDG        | bulk_store       | tensor bulk reduction from shared memory
UBLKRED         | bulk_store       | linear bulk reduction
UTMAPF          | bulk_prefetch    | prefetch a tensor box into L2
UBLKPF          | bulk_prefetch    | prefetch a range into L2
UTMACCTL        | bulk_prefetch    | prefetch or invalidate a tensor descriptor
UTMACMDFLUSH    | bulk_flush       | close a group of bulk stores
SYNCS           | mbarrier         | mbarrier operation: init, arrive, expect bytes, test phase, invalidate
SYNCSU          | mbarrier         | mbarrier operation with uniform operands
ARRIVES         | copy_arrive      | arrive on an mbarrier when earlier asynchronous copies complete
BAR             | barrier          | named CTA barrier
B2R             | special          | barrier register or result to register
R2B             | special          | register to barrier register
DEPBAR          | scoreboard_wait  | wait until at most n operations of a scoreboard are pending
LDGDEPBAR       | copy_commit      | close a group of asynchronous copies
BRA             | branch           | branch
BRX             | branch           | indirect branch
BRXU            | branch           | indirect branch, uniform target
JMP             | branch           | absolute jump
JMX             | branch           | absolute indirect jump
JMXU            | branch           | absolute indirect jump, uniform target
CALL            | branch           | call
RET             | branch           | return
RTT             | branch           | return from trap
BSSY            | branch           | set a reconvergence point
BSYNC           | branch           | reconverge
BREAK           | branch           | leave a reconvergence region
BMOV            | branch           | move a reconvergence barrier
BMOV32I         | branch           | set a reconvergence barrier
WARPSYNC        | branch           | reconverge lanes of a warp
ENDCOLLECTIVE   | branch           | end a collective region
YIELD           | branch           | let other lanes of a diverged warp run
EXIT            | exit             | end the lanes
KILL            | exit             | end the lanes
BPT             | exit             | breakpoint or trap
LDC             | constant         | load from a constant bank
ULDC            | uniform_constant | load from a constant bank to a uniform register
LDCU            | uniform_constant | load from a constant bank to a uniform register
S2R             | special          | special register to register
S2UR            | special          | special register to uniform register
LEPC            | special          | address of the next instruction
GETLMEMBASE     | special          | local memory base
SETLMEMBASE     | special          | set local memory base
R2UR            | alu              | register to uniform register
UP2UR           | uniform          | uniform predicates to uniform register
UR2UP           | uniform          | uniform register to uniform predicates
UIADD3          | uniform          | three-operand integer add
UIADD           | uniform          | integer add
UVIADD          | uniform          | two-operand integer add
UIMAD           | uniform          | integer multiply-add
UISETP          | uniform          | compare integers
UIABS           | uniform          | absolute value
UIMNMX          | uniform          | minimum or maximum of integers
UVIMNMX         | uniform          | minimum or maximum of integers
UVIMNMX3        | uniform          | three-input minimum or maximum of integers
UVIADDMNMX      | uniform          | integer add followed by minimum or maximum
ULEA            | uniform          | shifted add for addresses
ULOP3           | uniform          | three-input bitwise operation
ULOP            | uniform          | two-input bitwise operation
UPLOP3          | uniform          | operation on uniform predicates
UPSETP          | uniform          | combine uniform predicates
UMOV            | none             | move to a uniform register
UMOV32I         | uniform          | move a long immediate
USEL            | uniform          | select by predicate
USHF            | uniform          | funnel shift
USHL            | uniform          | shift left
USHR            | uniform          | shift right
USGXT           | uniform          | sign- or zero-extend a bit field
UPRMT           | uniform          | permute bytes
UBMSK           | uniform          | make a bit mask
UBREV           | uniform          | reverse bits
UFLO            | uniform          | find leading one
UPOPC           | uniform          | count set bits
UF2FP           | uniform          | convert and pack to narrow types
UF2I            | uniform          | floating point to integer
UF2IP           | uniform          | convert binary32 pairs to packed integers
UI2F            | uniform          | integer to floating point
UI2FP           | uniform          | 32-bit integer to binary32
UI2I            | uniform          | convert integers
UF2F            | uniform          | convert between floating-point widths
UFRND           | uniform          | round to integral value
UFADD           | uniform          | binary32 add
UFMUL           | uniform          | binary32 multiply
UFFMA           | uniform          | binary32 fused multiply-add
UFMNMX          | uniform          | minimum or maximum of binary32
UFSEL           | uniform          | select binary32
UFSET           | uniform          | compare binary32 into a register
UFSETP          | uniform          | compare binary32
UCLEA           | uniform          | address of a constant
UVOTE           | uniform          | vote on uniform state
UREDUX          | uniform          | reduce lanes into a uniform register
USETMAXREG      | uniform          | change the register count of a warpgroup
USETSHMSZ       | uniform          | set the shared memory size
UVIRTCOUNT      | uniform          | virtualisation count
UGETNEXTWORKID  | uniform          | ask for the next CTA of a dynamic schedule
UMEMSETS        | shared           | fill shared memory
USTGR           | uniform          | store from uniform registers
UCGABAR_ARV     | cluster_barrier  | arrive at the cluster barrier
UCGABAR_WAIT    | cluster_barrier  | wait for the cluster barrier
UCGABAR_GET     | cluster_barrier  | read cluster barrier state
UCGABAR_SET     | cluster_barrier  | set cluster barrier state
MEMBAR          | fence            | memory barrier
FENCE           | fence            | order the asynchronous proxy with ordinary accesses
ERRBAR          | fence            | error barrier
CGAERRBAR       | fence            | cluster error barrier
CCTL            | fence            | cache control
CCTLL           | fence            | cache control, local
CCTLT           | fence            | cache control, texture
QSPC            | special          | query the address space of a pointer
ACQBULK         | fence            | wait for the previous kernel's dependency
PREEXIT         | none             | let dependent kernels start
NANOSLEEP       | none             | suspend the warp
PMTRIG          | none             | trigger a performance monitor
PIXLD           | special          | pixel state
ISBERD          | special          | read an attribute buffer
AL2P            | special          | attribute address
OUT             | special          | emit a vertex
RPCMOV          | special          | move the resume address
NOP             | none             | nothing
VOTE_VTG        | vote             | vote of geometry work
ACQSHMINIT      | none             | wait for the shared-memory initialisation
UNKNOWN         | none             | an instruction that this table lacks, let through: it takes its issue slot alone
"""


@lru_cache(maxsize=1)
def opcodes() -> dict[str, Opcode]:
    """Every row by name."""
    rows = (Opcode(*(cell.strip() for cell in line.split("|"))) for line in _ROWS.strip().splitlines())
    return {row.name: row for row in rows}


@lru_cache(maxsize=4096)
def find_opcode(mnemonic: str) -> Opcode:
    """Row of a full mnemonic such as "IMAD.WIDE.U32": the row with its first modifier if there is one, else the base
    row. Unsupported, naming the mnemonic, when the table has neither."""
    base, *modifiers = mnemonic.split(".")
    table = opcodes()
    row = table.get(f"{base}.{modifiers[0]}") if modifiers else None
    row = row or table.get(base)
    if row is None:
        raise Unsupported(f"opcode {mnemonic} is not in the instruction table")
    return row


def pipe_of(mnemonic: str) -> str:
    """Pipe class (one of PIPES) of a full mnemonic. Unsupported, naming the mnemonic, when it is unknown."""
    return find_opcode(mnemonic).pipe
