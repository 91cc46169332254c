package testdb

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/internal/testenv"
)

// galeraProvider is the library that makes a cluster of MariaDB servers.
const galeraProvider = "/usr/lib/galera/libgalera_smm.so"

// StartGalera starts n MariaDB servers as one Galera cluster for this test
// alone. Each of them takes writes, and what is created on one of them is there
// on all. They are stopped and removed when the test ends.
func StartGalera(t testing.TB, n int) []*Server {
	t.Helper()
	if os.Getenv(MySQLEnv) == "" {
		mariadb.requireBinaries(t)
	} else if _, err := mariadb.find(); err != nil {
		testenv.Missing(t, "MariaDB", "install the Debian package mariadb-server")
	}
	if _, err := os.Stat(galeraProvider); err != nil {
		testenv.Missing(t, "Galera", "install the Debian package galera-4")
	}
	if _, err := exec.LookPath("rsync"); err != nil {
		testenv.Missing(t, "rsync", "install the Debian package rsync")
	}
	nodes, err := startGalera(n)
	t.Cleanup(func() {
		for _, s := range slices.Backward(nodes) {
			if err := s.close(); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return nodes
}

// SameDatabase is this node's DSN for a database that Database has created on
// another node.
func (s *Server) SameDatabase(t testing.TB, dsn string) string {
	t.Helper()
	_, name, _ := strings.Cut(dsn[strings.LastIndex(dsn, "/"):], "/")
	out, err := s.engine.withDatabase(s.dsn, name)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func startGalera(n int) (nodes []*Server, err error) {
	bin, err := mariadb.find()
	if err != nil {
		return nil, err
	}
	ports := make([][4]int, n) // of clients, the group, and two kinds of state transfer
	var group []string
	for i := range ports {
		for j := range ports[i] {
			if ports[i][j], err = freePort(); err != nil {
				return nil, err
			}
		}
		group = append(group, fmt.Sprintf("127.0.0.1:%d", ports[i][1]))
	}
	for i := range n {
		dir, err := os.MkdirTemp(os.Getenv(DirEnv), "diego-testdb-")
		if err != nil {
			return nodes, err
		}
		s := &Server{engine: &mariadb, bin: bin, dir: dir, port: ports[i][0]}
		if nodes = append(nodes, s); i == 0 {
			s.password = rand.Text()
		} else {
			s.password = nodes[0].password
		}
		s.dsn = mariadb.dsn(s)
		if err := s.prepare(); err != nil {
			return nodes, err
		}
		s.extra = []string{
			"--wsrep-on=ON", "--wsrep-provider=" + galeraProvider, "--wsrep-sst-method=rsync",
			"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--innodb-flush-log-at-trx-commit=2",
			"--wsrep-node-address=" + group[i], fmt.Sprintf("--wsrep-node-name=node-%d", i+1),
			fmt.Sprintf("--wsrep-sst-receive-address=127.0.0.1:%d", ports[i][2]),
			fmt.Sprintf("--wsrep-provider-options=gmcast.listen_addr=tcp://%s;ist.recv_addr=127.0.0.1:%d;gcache.size=16M", group[i], ports[i][3]),
		}
		join := "--wsrep-cluster-address=gcomm://" + strings.Join(group, ",")
		if i == 0 {
			s.extra = append(s.extra, "--wsrep-cluster-address=gcomm://")
		} else {
			s.extra = append(s.extra, join)
			// The accounts come with the state of the other nodes.
			if err := os.Truncate(s.path("init.sql"), 0); err != nil {
				return nodes, err
			}
		}
		if err := s.boot(); err != nil {
			return nodes, err
		}
		s.extra[len(s.extra)-1] = join // if it is started again
	}
	return nodes, nil
}
