//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/identity"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/internal/devcerts"
)

// identified is the variable by which this binary is one of two apps that meet
// over TLS with the certificates of their containers: its value is "serve", or
// the address at which the one that serves is reached.
const identified = "DIEGO_TEST_IDENTIFIED"

const identityPort = 8443

// identify is the main of either app.
func identify() {
	certificate := func() (*tls.Certificate, error) {
		current, err := filepath.EvalSymlinks(filepath.Join(filepath.Dir(os.Getenv("CF_INSTANCE_CERT")), "current"))
		if err != nil {
			return nil, err
		}
		pair, err := tls.LoadX509KeyPair(filepath.Join(current, "instance.crt"), filepath.Join(current, "instance.key"))
		return &pair, err
	}
	ca, err := os.ReadFile(filepath.Join(os.Getenv("CF_SYSTEM_CERT_PATH"), "ca.pem"))
	check(err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(ca)
	if address := os.Getenv(identified); address != "serve" {
		ask := &tls.Config{RootCAs: trusted, ServerName: "server", GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate() }}
		for last := ""; ; time.Sleep(50 * time.Millisecond) {
			conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", address, ask)
			check(err)
			answer, err := io.ReadAll(conn)
			check(err)
			met := conn.ConnectionState().PeerCertificates[0]
			if line := fmt.Sprintf("met %v at %v, %v, who met %s", met.Subject, met.IPAddresses, met.SerialNumber, answer); line != last {
				fmt.Println(line)
				last = line
			}
			conn.Close()
		}
	}
	l, err := tls.Listen("tcp", fmt.Sprintf(":%d", identityPort), &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate() },
		ClientAuth:     tls.RequireAndVerifyClientCert, ClientCAs: trusted,
	})
	check(err)
	fmt.Println("listening")
	for {
		conn, err := l.Accept()
		check(err)
		if conn := conn.(*tls.Conn); conn.Handshake() == nil {
			fmt.Fprint(conn, conn.ConnectionState().PeerCertificates[0].Subject)
		}
		conn.Close()
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// programs is a volume driver that mounts the directory of this binary.
type programs struct{}

func (programs) Mount(context.Context, string, executor.VolumeMount) (string, error) {
	exe, err := os.Executable()
	return filepath.Dir(exe), err
}

func (programs) Unmount(context.Context, string, executor.VolumeMount) error { return nil }

func TestContainersMeetOverTLSWithTheCertificatesOfTheirInstancesAndTheRenewedOnes(t *testing.T) {
	f := newFixture(t)
	hostAddress, machineAddress := addressesOutside(f)
	anotherMachine(f, hostAddress, machineAddress) // which gives this host an address that containers reach
	ca, err := devcerts.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	caPEM, keyPEM, err := ca.PEM()
	if err != nil {
		t.Fatal(err)
	}
	authority, err := identity.NewAuthority(caPEM, keyPEM, identity.MinLifetime, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	trusted := t.TempDir()
	if err := os.WriteFile(filepath.Join(trusted, "ca.pem"), caPEM, 0o644); err != nil {
		t.Fatal(err)
	}
	var ahead atomic.Int64 // of the cell's clock
	m, stop := startManager(t, f.Backend, t.TempDir(), func(o *manager.Options) {
		o.Identity, o.TrustedCertificates, o.Volumes = authority, trusted, map[string]manager.VolumeDriver{"programs": programs{}}
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	t.Cleanup(stop)
	c := &cell{m, f, m.Subscribe()}
	t.Cleanup(c.news.Close)
	if fields := strings.Join(m.RefusedFields(), " "); strings.Contains(fields, "certificate_properties") {
		t.Errorf("the cell refuses %s", fields)
	}

	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	app := func(role, unit string, ports ...uint16) manager.Work {
		return manager.Work{RunInfo: executor.RunInfo{
			RootFS: "host:", Ports: ports, TrustedSystemCertificatesPath: "/trusted",
			CertificateProperties: &executor.CertificateConfig{OrganizationalUnit: []string{unit}},
			VolumeMounts:          []executor.VolumeMount{{Driver: "programs", ContainerDir: "/programs", Mode: executor.MountReadOnly, Shared: &executor.SharedDevice{VolumeID: "tests"}}},
			Env:                   []executor.EnvVar{{Name: identified, Value: role}},
			Action:                executor.Action{Run: &executor.RunAction{Path: "/programs/" + filepath.Base(exe), User: "nobody"}},
		}}
	}
	c.launch("server", modest, app("serve", "app:server", identityPort))
	at := c.await("server", executor.Running).Addresses
	f.eventually("the server listens", func() bool { return c.log("server", manager.Stdout) != "" })
	c.launch("client", modest, app(fmt.Sprintf("%s:%d", hostAddress, at.Ports[0].HostPort), "app:client"))
	met := func(n int) []string {
		t.Helper()
		var lines []string
		f.eventually(fmt.Sprintf("the client has met %d certificates", n), func() bool {
			lines = strings.Split(strings.TrimSuffix(c.log("client", manager.Stdout), "\n"), "\n")
			now, _ := c.Get("client")
			return lines[0] != "" && len(lines) >= n || now.State == executor.Completed
		})
		if errors := c.log("client", manager.Stderr); errors != "" || len(lines) < n {
			t.Fatalf("the client: %q: %s", lines, errors)
		}
		return lines
	}
	want := fmt.Sprintf("met CN=server,OU=app:server at [%s], ", at.InternalIP)
	first := met(1)[0]
	if !strings.HasPrefix(first, want) || !strings.HasSuffix(first, ", who met CN=client,OU=app:client") {
		t.Errorf("the client has %q", first)
	}
	ahead.Store(int64(identity.MinLifetime - time.Second)) // the last second of all certificates
	if second := met(2)[1]; !strings.HasPrefix(second, want) {
		t.Errorf("after the renewal the client has %q", second)
	}
	key := "/etc/cf-instance-credentials/instance.key"
	c.launch("other", modest, script("root", "ls -l "+key+"; if echo x > "+key+"; then echo written; fi; rm -rf "+key+"; cat $CF_INSTANCE_KEY | head -1"))
	if c.result("other"); !strings.HasSuffix(c.log("other", manager.Stdout), "-----BEGIN PRIVATE KEY-----\n") || strings.Contains(c.log("other", manager.Stdout), "written") {
		t.Errorf("a container could change its own key, or not read it: %s%s", c.log("other", manager.Stdout), c.log("other", manager.Stderr))
	}
	c.remove("server", "client", "other")
}
