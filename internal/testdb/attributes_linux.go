package testdb

import "syscall"

// attributes runs a program as its owner and has the kernel end it when the
// test process ends, however it ends. SIGQUIT makes PostgreSQL end its children
// too; MariaDB has none.
func attributes(owner *account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if owner != nil {
		attr.Credential = &syscall.Credential{Uid: uint32(owner.uid), Gid: uint32(owner.gid)}
	}
	return attr
}
