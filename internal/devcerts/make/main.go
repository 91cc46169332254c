// Command make writes certificates for development; scripts/certs calls it.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/diegosdk/diego/internal/devcerts"
)

// roles are what a certificate may be for.
var roles = []string{"bbs", "auctioneer", "cell", "consumer", "operator"}

// everyone is who gets a certificate unless the command line says who does.
var everyone = []string{"bbs", "auctioneer", "cell:cell-1", "cell:cell-2", "consumer", "operator"}

var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func main() {
	dir := flag.String("dir", "certs", "where the files go, and where the authority is if there is one already")
	hosts := flag.String("hosts", "localhost,127.0.0.1,::1", "names and addresses at which their holders listen")
	days := flag.Int("days", 365, "how long they are good")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: scripts/certs [flags] [ROLE[:NAME]...]\n\nRoles: %s. NAME is who it is, and the name of the files; a cell's is its id.\nWithout any: %s.\nThose that are there already are replaced; the authority is not.\n\n",
			strings.Join(roles, ", "), strings.Join(everyone, " "))
		flag.PrintDefaults()
	}
	flag.Parse()
	wanted := flag.Args()
	if len(wanted) == 0 {
		wanted = everyone
	}
	if err := issue(*dir, strings.Split(*hosts, ","), *days, wanted); err != nil {
		fmt.Fprintln(os.Stderr, "certs:", err)
		os.Exit(1)
	}
}

func issue(dir string, hosts []string, days int, wanted []string) error {
	if days < 1 || days > 3650 {
		return fmt.Errorf("-days %d: want 1 to 3650", days)
	}
	var requests []devcerts.Request
	for _, w := range wanted {
		role, name, found := strings.Cut(w, ":")
		if !found {
			name = role
		}
		switch {
		case !slices.Contains(roles, role):
			return fmt.Errorf("%s: want one of the roles %s", w, strings.Join(roles, ", "))
		case !fileName.MatchString(name) || name == "ca":
			return fmt.Errorf("%s: want a name of letters, digits, ., - and _, other than ca", w)
		}
		requests = append(requests, devcerts.Request{
			File: name, Name: name, Units: []string{"diego-" + role}, Hosts: hosts, For: time.Duration(days) * 24 * time.Hour,
		})
	}
	authority, err := devcerts.Open(dir)
	if err != nil {
		return err
	}
	fmt.Println(authority.CA(), "is the authority")
	for _, r := range requests {
		cert, key, err := authority.Issue(r)
		if err != nil {
			return err
		}
		fmt.Printf("%s, %s: %s as %s\n", cert, key, r.Name, r.Units[0])
	}
	return nil
}
