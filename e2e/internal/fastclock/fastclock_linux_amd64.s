#include "textflag.h"

// scaled has the C calling convention of __vdso_clock_gettime: DI is the number of the
// clock, 0 (wall) or 1 (monotonic), and SI points to the result, a struct timespec. The
// runtime calls it on the stack of the thread.
TEXT ·scaled(SB),NOSPLIT|NOFRAME,$0-0
	PUSHQ	DI
	PUSHQ	SI
	SUBQ	$8, SP	// align for C code
	MOVQ	·fast+0(SB), AX
	CALL	AX	// the original
	ADDQ	$8, SP
	POPQ	SI
	POPQ	DI

	// now = start + (now - start) * factor, in nanoseconds. DI indexes fast.starts.
	MOVQ	0(SI), AX
	IMULQ	$1000000000, AX
	ADDQ	8(SI), AX
	LEAQ	·fast+16(SB), R8
	MOVQ	(R8)(DI*8), R8
	SUBQ	R8, AX
	IMULQ	·fast+8(SB), AX
	ADDQ	R8, AX

	XORL	DX, DX
	MOVQ	$1000000000, CX
	DIVQ	CX
	MOVQ	AX, 0(SI)
	MOVQ	DX, 8(SI)
	XORL	AX, AX
	RET

// func scaledAddress() uintptr
TEXT ·scaledAddress(SB),NOSPLIT,$0-8
	MOVQ	$·scaled(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
