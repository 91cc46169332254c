//go:build !linux

package testdb

import "syscall"

func dieWithParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr { return attr }
