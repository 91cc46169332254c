package testdb

import "syscall"

// attributes makes a program run as its owner, and has the kernel end it when
// the test process is gone, however that went. PostgreSQL's SIGQUIT takes its
// children with it, and MariaDB has none.
func attributes(owner *account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if owner != nil {
		attr.Credential = &syscall.Credential{Uid: uint32(owner.uid), Gid: uint32(owner.gid)}
	}
	return attr
}
