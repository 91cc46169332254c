//go:build !linux

package transfer

// nearlyFull is for systems whose containers have no disks of their own.
func nearlyFull(string) bool { return true }
