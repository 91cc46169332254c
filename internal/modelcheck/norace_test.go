//go:build !race

package modelcheck

const mostStates = 0 // no limit
