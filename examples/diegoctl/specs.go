package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/internal/specfile"
)

// fileFlags are --file, which the usage line of its command shows.
func fileFlags(of string) []cli.Flag {
	return []cli.Flag{{Name: "file", Short: "f", Kind: cli.File, Required: true, Help: "the spec file in YAML or JSON, of " + of + "; - is standard input"}}
}

// readSpec reads a spec file; "-" is standard input.
func (c *call) readSpec(path string) (name string, data []byte, err error) {
	if path == "-" {
		data, err := io.ReadAll(io.LimitReader(c.stdin, specfile.MaxBytes+1))
		return "standard input", data, err
	}
	file, err := os.Open(path)
	if err != nil {
		return path, nil, err
	}
	defer file.Close()
	data, err = io.ReadAll(io.LimitReader(file, specfile.MaxBytes+1))
	return path, data, err
}

// spec reads the file of --file as one kind of spec.
func spec[T any](c *call, read func(name string, data []byte) (T, error)) (T, error) {
	name, data, err := c.readSpec(c.text("file"))
	if err != nil {
		var none T
		return none, err
	}
	return read(name, data)
}

// specEndings are how the spec files of a directory end.
var specEndings = []string{".json", ".yaml", ".yml"}

// documents reads spec files, and those in directories, but not in directories
// below. The error is about all of them, and of two documents about one thing.
func (c *call) documents(paths []string) ([]specfile.Document, error) {
	var list []specfile.Document
	var errs []error
	read := func(path string) {
		name, data, err := c.readSpec(path)
		if err == nil {
			var docs []specfile.Document
			docs, err = specfile.Documents(name, data)
			list = append(list, docs...)
		}
		errs = append(errs, err)
	}
	for _, path := range paths {
		if info, err := os.Stat(path); path == "-" || err != nil || !info.IsDir() {
			read(path)
			continue
		}
		entries, err := os.ReadDir(path)
		found := false
		for _, e := range entries {
			if !e.IsDir() && slices.Contains(specEndings, filepath.Ext(e.Name())) {
				read(filepath.Join(path, e.Name()))
				found = true
			}
		}
		if err == nil && !found {
			err = fmt.Errorf("the directory %s has no spec file; want a name that ends with %s", path, strings.Join(specEndings, ", "))
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return list, unique(list)
}

// unique refuses two documents about one process or task.
func unique(list []specfile.Document) error {
	var errs []error
	first := map[string]specfile.Document{}
	for _, d := range list {
		if before, twice := first[nameOfDocument(d)]; twice {
			errs = append(errs, wrongDocument(d, "", fmt.Sprintf("%s is in %s:%d:%d already; want it once", nameOfDocument(d), before.File, before.Line, before.Column)))
			continue
		}
		first[nameOfDocument(d)] = d
	}
	return errors.Join(errs...)
}

// nameOfDocument is the guid of a process, or "task" and that of a task.
func nameOfDocument(d specfile.Document) string {
	if d.Task != nil {
		return "task " + d.Task.GUID
	}
	return d.Process.ProcessGUID
}

// wrongDocument says what is wrong with a document that is valid by itself.
func wrongDocument(d specfile.Document, field, text string) error {
	return &specfile.Error{File: d.File, Problems: []specfile.Problem{{Line: d.Line, Column: d.Column, Field: field, Text: text}}}
}
