package manager

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/identity"
)

// CredentialsDir is where a container finds its certificate and key, as
// instance.crt and instance.key. Both are links that lead through the link
// "current" to a directory of the same two files, and a renewal renames a new
// "current" over the old one. So each path always leads to a whole file. A reader
// that looks up "current" once, and opens both files in the directory that it
// leads to, has a pair that matches: that directory stays as it is until the
// renewal after the next one.
//
// Plain processes see the host's files. There the directory is another one, and
// only the variables lead to it.
const CredentialsDir = "/etc/cf-instance-credentials"

const (
	certificateFile = "instance.crt"
	keyFile         = "instance.key"
	currentLink     = "current"
	// allCredentials lies in Options.Dir.
	allCredentials = "credentials"
)

// credentials are the certificate and key of one container, in a directory of
// the host that is mounted into it. Only the host's root, or the user of the
// daemon, comes to that directory from outside.
type credentials struct {
	manager *Manager
	dir     string // on the host
	inside  string // as processes of the container see it

	holder identity.Holder

	// These are guarded by the Manager's lock once the container is made.
	pair     identity.Pair // without its key
	renewing bool
	failed   bool // the last attempt

	mu         sync.Mutex // held while files are written
	generation int
	removed    bool
}

// openCredentials removes what an earlier manager has left, whose containers are
// gone or going, and tells host what the manager adds to it.
func (o *Options) openCredentials(host *executor.Host) error {
	if o.Dir == "" {
		return nil
	}
	dir := filepath.Join(o.Dir, allCredentials)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if o.Identity == nil {
		return nil
	}
	feature := executor.Feature{Name: executor.FeatureIdentity}
	if !host.Isolated && host.Has(executor.FeatureUsers) {
		feature.Missing = "processes run as several users of the host, from whom a key cannot be kept; use real containers, or one user for all"
	}
	host.Features = append(slices.DeleteFunc(slices.Clone(host.Features), func(f executor.Feature) bool { return f.Name == feature.Name }), feature)
	return os.MkdirAll(dir, 0o700)
}

// credit gives a container that is going to be made a directory for its
// certificate.
func (p *preparation) credit(spec *executor.ContainerSpec) error {
	m := p.manager
	if !m.host.Has(executor.FeatureIdentity) {
		return nil
	}
	c := &credentials{manager: m, dir: filepath.Join(m.options.Dir, allCredentials, p.container.GUID), inside: CredentialsDir}
	if !m.host.Isolated {
		c.inside = c.dir
	}
	c.holder.InstanceGUID = instanceGUID(p.container)
	if spec.CertificateProperties != nil {
		c.holder.OrganizationalUnit = spec.CertificateProperties.OrganizationalUnit
		spec.CertificateProperties = nil // the backend has nothing to do for it
	}
	p.undo = append(p.undo, c.remove)
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{certificateFile, keyFile} {
		if err := os.Symlink(filepath.Join(currentLink, name), filepath.Join(c.dir, name)); err != nil {
			return err
		}
	}
	spec.Mounts = append(spec.Mounts, executor.Mount{Source: c.dir, Target: CredentialsDir})
	p.credentials = c
	return os.Chmod(c.dir, 0o755) // with any umask
}

// issueFirst writes the first pair of a container that has been made.
func (c *credentials) issueFirst(e executor.Endpoint) (err error) {
	if c == nil {
		return nil
	}
	// An address that cannot be read is refused by executor.Container.Create.
	c.holder.Address, _ = netip.ParseAddr(cmp.Or(e.InternalIP, e.ExternalIP))
	c.pair, err = c.issue()
	return err
}

// issue writes a new pair and returns it without its key.
func (c *credentials) issue() (identity.Pair, error) {
	o := &c.manager.options
	pair, err := o.Identity.Issue(c.holder, o.Now(), rand.Reader)
	if err == nil {
		err = c.write(pair)
	}
	pair.Certificate, pair.Key = nil, nil
	return pair, err
}

// write makes a pair the current one in one step.
func (c *credentials) write(pair identity.Pair) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.removed {
		return nil
	}
	mode := os.FileMode(0o444) // for all users of the container
	if !c.manager.host.Isolated {
		mode = 0o400
	}
	name := strconv.Itoa(c.generation + 1)
	dir, link := filepath.Join(c.dir, name), filepath.Join(c.dir, "next")
	// The pair before the current one, and what an attempt that failed has left.
	for _, path := range []string{filepath.Join(c.dir, strconv.Itoa(c.generation-1)), dir, link} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for _, f := range []struct {
		name    string
		content []byte
	}{{keyFile, pair.Key}, {certificateFile, pair.Certificate}} {
		path := filepath.Join(dir, f.name)
		if err := os.WriteFile(path, f.content, 0o400); err != nil {
			return err
		}
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(name, link); err != nil {
		return err
	}
	if err := os.Rename(link, filepath.Join(c.dir, currentLink)); err != nil {
		return err
	}
	c.generation++
	return nil
}

// remove removes the files, once the container is gone. It may be called again.
func (c *credentials) remove(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removed = true
	return os.RemoveAll(c.dir)
}

// path is the directory as processes of the container see it, empty for nil.
func (c *credentials) path() string {
	if c == nil {
		return ""
	}
	return c.inside
}

// checkCredentials renews the pairs of live containers that are due. What fails
// is tried again by the next check.
func (m *Manager) checkCredentials() {
	authority := m.options.Identity
	m.after(authority.CheckInterval(), m.checkCredentials)
	now := m.options.Now()
	for _, guid := range slices.Sorted(maps.Keys(m.entries)) {
		e := m.entries[guid]
		c := e.credentials
		if c == nil || e.recipe == nil || c.renewing || !authority.Due(c.pair, now) {
			continue
		}
		c.renewing = true
		m.submit(createPool, JobRenew, guid, func(context.Context) func() {
			pair, err := c.issue()
			return func() {
				c.renewing = false
				if err == nil {
					c.pair = pair
				}
				e.tellRenewal(err)
			}
		})
	}
}

// tellRenewal tells the operator and the container's own log of the first of
// several failures, and of the success after them.
func (e *entry) tellRenewal(err error) {
	if !e.there() || e.recipe == nil {
		return
	}
	c, log := e.credentials, e.manager.options.Logger
	again := c.failed && err != nil
	recovered := c.failed && err == nil
	c.failed = err != nil
	_, stderr := e.logs.writers(false, false, e.container.RunInfo.LogSource)
	switch {
	case again:
	case err != nil:
		log.Error("the certificate of a container could not be renewed; the container goes on, and the cell tries again", "guid", e.guid,
			"ends", c.pair.NotAfter, "every", e.manager.options.Identity.CheckInterval(), "error", err)
		e.say(stderr, fmt.Sprintf("The cell could not renew the certificate of this instance, which ends at %v, and tries again: %v", c.pair.NotAfter, brief(err)))
	case recovered:
		log.Info("the certificate of a container was renewed after all", "guid", e.guid, "ends", c.pair.NotAfter)
		e.say(stderr, fmt.Sprintf("The certificate of this instance was renewed after all. It ends at %v.", c.pair.NotAfter))
	}
}
