// Command make writes certificates for development; scripts/certs calls it.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/devcerts"
)

// everyone is who gets a certificate unless the command line says who does. The
// control plane may also place work.
var everyone = []string{"bbs+auctioneer:bbs", "auctioneer", "cell:cell-1", "cell:cell-2", "consumer", "operator"}

// serving are the roles of those that others ask. A consumer and an operator
// listen nowhere, so their certificates are good for asking only.
var serving = []httpapi.Role{httpapi.BBSRole, httpapi.AuctioneerRole, httpapi.CellRole}

var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func main() {
	dir := flag.String("dir", "certs", "where the files go, and where the authority is if there is one already")
	domains := flag.String("domains", "", "domains of a log-reader or of exec, separated by commas")
	locks := flag.String("locks", "", "names of the locks that a locker may hold, separated by commas")
	hosts := flag.String("hosts", "localhost,127.0.0.1,::1", "names and addresses at which a bbs, an auctioneer or a cell listens")
	days := flag.Int("days", 365, "how long they are good")
	identity := flag.Bool("identity", false, "also make an authority that signs the certificates of containers, in the directory identity below: identity_ca_cert and identity_ca_key of cells")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: scripts/certs [flags] [ROLE[+ROLE...][:NAME]...]\n\nRoles: %v. NAME is who it is, and the name of the files; a cell's is its id.\nWithout any: %s.\nThose that are there already are replaced; the authority is not.\n\n",
			httpapi.Roles, strings.Join(everyone, " "))
		flag.PrintDefaults()
	}
	flag.Parse()
	wanted := flag.Args()
	if len(wanted) == 0 {
		wanted = everyone
	}
	err := issue(*dir, strings.Split(*hosts, ","), strings.FieldsFunc(*domains, isComma), strings.FieldsFunc(*locks, isComma), *days, wanted)
	if err == nil && *identity {
		err = makeIdentity(*dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "certs:", err)
		os.Exit(1)
	}
}

// makeIdentity makes the authority for containers. It is another one than that
// of the fleet, or containers could call the fleet.
func makeIdentity(dir string) error {
	authority, err := devcerts.Open(filepath.Join(dir, "identity"))
	if err == nil {
		fmt.Println(authority.CA(), "and", authority.CAKey(), "are the authority for containers")
	}
	return err
}

func isComma(r rune) bool { return r == ',' }

func issue(dir string, hosts, domains, locks []string, days int, wanted []string) error {
	if days < 1 || days > 3650 {
		return fmt.Errorf("-days %d: want 1 to 3650", days)
	}
	var requests []devcerts.Request
	for _, w := range wanted {
		roles, name, found := strings.Cut(w, ":")
		if !found {
			name = roles
		}
		r := devcerts.Request{File: name, Name: name, For: time.Duration(days) * 24 * time.Hour}
		for role := range strings.SplitSeq(roles, "+") {
			if !slices.Contains(httpapi.Roles, httpapi.Role(role)) {
				return fmt.Errorf("%s: %q is not a role; want some of %v", w, role, httpapi.Roles)
			}
			r.Units = append(r.Units, "diego-"+role)
			if role == string(httpapi.LogReaderRole) || role == string(httpapi.ExecRole) {
				if len(domains) == 0 {
					return fmt.Errorf("%s: the role %s does nothing without a domain; name some with -domains", w, role)
				}
				for _, domain := range domains {
					if unit := "diego-domain:" + domain; !slices.Contains(r.Units, unit) {
						r.Units = append(r.Units, unit)
					}
				}
			}
			if role == string(httpapi.LockerRole) {
				if len(locks) == 0 {
					return fmt.Errorf("%s: a locker without the name of a lock holds none; name some with -locks", w)
				}
				for _, lock := range locks {
					r.Units = append(r.Units, "diego-lock:"+lock)
				}
			}
			if slices.Contains(serving, httpapi.Role(role)) {
				r.Hosts = hosts
			}
		}
		if !fileName.MatchString(name) || name == "ca" {
			return fmt.Errorf("%s: want a name of letters, digits, ., - and _, other than ca, as in %s:NAME", w, roles)
		}
		requests = append(requests, r)
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
		at := "asks only"
		if len(r.Hosts) > 0 {
			at = "listens at " + strings.Join(r.Hosts, ", ")
		}
		fmt.Printf("%s, %s: %s as %s; %s\n", cert, key, r.Name, strings.Join(r.Units, ", "), at)
	}
	return nil
}
