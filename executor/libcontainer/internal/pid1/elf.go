//go:build linux && cgo && (amd64 || arm64)

// Package pid1 holds the first process of every container and the way to talk
// to it. pid1.c says what that process does; [Program] is its program, and
// [Conn] the daemon's end of its socket.
package pid1

/*
#cgo CFLAGS: -O1 -fno-stack-protector -fno-builtin-memset -fno-builtin-memcpy
#include "pid1.h"

const char *diego_pid1_code(void);
uint64_t diego_pid1_size(void);
uint64_t diego_pid1_start(void);
*/
import "C"

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ProgramFD and SocketFD are the descriptors under which the program finds
// itself and its socket.
const (
	SocketFD  = 3
	ProgramFD = C.PID1_PROGRAM_FD
)

// ProgramPath is how a process that has the program as ProgramFD executes it.
var ProgramPath = fmt.Sprintf("/proc/self/fd/%d", ProgramFD)

// Program returns the program as a sealed file in memory: no container can
// change what the next one runs.
func Program() (*os.File, error) {
	fd, err := unix.MemfdCreate("diego-pid1", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if err == unix.EINVAL { // before Linux 6.3 everything was executable
		fd, err = unix.MemfdCreate("diego-pid1", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "diego-pid1")
	if _, err = f.Write(image()); err == nil {
		err = f.Chmod(0o555)
	}
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("the first process's program: %w", err)
	}
	return f, nil
}

// image wraps the code into the smallest program that the kernel loads: one
// segment, and a stack that cannot be executed.
func image() []byte {
	const (
		address = 0x400000
		offset  = 0x1000 // of the code, so that it keeps its alignment
	)
	code := C.GoBytes(unsafe.Pointer(C.diego_pid1_code()), C.int(C.diego_pid1_size()))
	machine := elf.EM_X86_64
	if runtime.GOARCH == "arm64" {
		machine = elf.EM_AARCH64
	}
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Entry: address + offset + uint64(C.diego_pid1_start()),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 2,
	}
	segments := []elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: address, Paddr: address,
			Filesz: offset + uint64(len(code)), Memsz: offset + uint64(len(code)), Align: 0x10000},
		{Type: uint32(elf.PT_GNU_STACK), Flags: uint32(elf.PF_R | elf.PF_W), Align: 16},
	}
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, header)
	binary.Write(&b, binary.LittleEndian, segments)
	b.Write(make([]byte, offset-b.Len()))
	b.Write(code)
	return b.Bytes()
}
