//go:build !unix

package tenant

// NoFollow is the flag of Open that follows no link.
const NoFollow = 1 << 30

const harmless = 0
