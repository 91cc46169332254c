//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"runtime"
)

// executable is a program of nothing but machine code, which needs no file of
// an image but itself.
func executable(code []byte) []byte {
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	const address, headers = 0x400000, 64 + 56
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Entry: address + headers, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	})
	size := uint64(headers + len(code))
	binary.Write(&b, binary.LittleEndian, elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: address, Filesz: size, Memsz: size, Align: 0x1000,
	})
	b.Write(code)
	return b.Bytes()
}

// hello is a program that writes hello to its standard error and ends with
// status 0.
func hello() []byte {
	code := map[string][]byte{
		"amd64": {
			0xbf, 2, 0, 0, 0, // mov $2, %edi
			0x48, 0x8d, 0x35, 21, 0, 0, 0, // lea text(%rip), %rsi
			0xba, 6, 0, 0, 0, // mov $6, %edx
			0xb8, 1, 0, 0, 0, // mov $write, %eax
			0x0f, 0x05, // syscall
			0xb8, 231, 0, 0, 0, // mov $exit_group, %eax
			0x31, 0xff, // xor %edi, %edi
			0x0f, 0x05, // syscall
		},
		"arm64": {
			0x40, 0x00, 0x80, 0xd2, // mov x0, #2
			0xe1, 0x00, 0x00, 0x10, // adr x1, text
			0xc2, 0x00, 0x80, 0xd2, // mov x2, #6
			0x08, 0x08, 0x80, 0xd2, // mov x8, #write
			0x01, 0x00, 0x00, 0xd4, // svc #0
			0x00, 0x00, 0x80, 0xd2, // mov x0, #0
			0xc8, 0x0b, 0x80, 0xd2, // mov x8, #exit_group
			0x01, 0x00, 0x00, 0xd4, // svc #0
		},
	}[runtime.GOARCH]
	return executable(append(code, "hello\n"...))
}
