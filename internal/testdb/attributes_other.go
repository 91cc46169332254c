//go:build !unix

package testdb

import "syscall"

func attributes(*account) *syscall.SysProcAttr { return nil }
