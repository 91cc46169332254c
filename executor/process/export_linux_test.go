package process

import "time"

// Looks calls look in place of each look at the host, until restore is called.
// original takes that look. No look may go on when either is called.
func Looks(look func(original func() error) error) (restore func()) {
	original := censuses.take
	censuses.take = func() (c *census, err error) {
		err = look(func() (err error) {
			c, err = original()
			return err
		})
		return c, err
	}
	return func() { censuses.take = original }
}

// LookAt makes all looks at the host look at proc instead of /proc until restore is
// called. No look may go on when either is called.
func LookAt(proc string) (restore func()) {
	original := censuses.take
	censuses.take = newLooker(proc, time.Second).take
	return func() { censuses.take = original }
}
