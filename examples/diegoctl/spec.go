package main

import (
	"io"
	"os"

	"github.com/diegosdk/diego/internal/specfile"
)

// readSpec reads the file of -f; "-" is standard input.
func (c *call) readSpec() (name string, data []byte, err error) {
	name = c.flag("f")
	if name == "-" {
		data, err := io.ReadAll(io.LimitReader(c.stdin, specfile.MaxBytes+1))
		return "standard input", data, err
	}
	file, err := os.Open(name)
	if err != nil {
		return name, nil, err
	}
	defer file.Close()
	data, err = io.ReadAll(io.LimitReader(file, specfile.MaxBytes+1))
	return name, data, err
}

// spec reads the file of -f as one kind of what is wanted.
func spec[T any](c *call, read func(name string, data []byte) (T, error)) (T, error) {
	name, data, err := c.readSpec()
	if err != nil {
		var none T
		return none, err
	}
	return read(name, data)
}

// fileFlag is -f.
func fileFlag(of string) flagSpec {
	return flagSpec{name: "f", kind: kindFile, required: true, help: "the spec file, " + of + "; - is standard input"}
}
