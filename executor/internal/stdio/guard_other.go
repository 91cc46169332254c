//go:build unix && !linux

package stdio

func threadNumber() int { return 0 }

func waitsForLock(int, []string) bool { return false }
