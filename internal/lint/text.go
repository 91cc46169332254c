package lint

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// leftovers mark unfinished work. The words are split here so that this file
// passes its own rule; so are the hosts below.
var leftovers = pattern{regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`), []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"}}

// mergeMarks are what git leaves in a file where two changes meet.
var mergeMarks = pattern{regexp.MustCompile(`(?m)^(<{7}|>{7}) `), []string{"<<<<<<<", ">>>>>>>"}}

// A pattern is a regular expression with texts of which each match has one. Few
// files and lines have any, and looking for the texts takes far less time than
// the expression does.
type pattern struct {
	*regexp.Regexp
	texts []string
}

// mayMatch is false if nothing in the text matches.
func (p pattern) mayMatch(text []byte) bool {
	return slices.ContainsFunc(p.texts, func(s string) bool { return bytes.Contains(text, []byte(s)) })
}

// registries are hosts that only the user's own configuration may name.
var registries = []string{
	"proxy.golang" + ".org", "sum.golang" + ".org", "goproxy" + ".io", "registry.npmjs" + ".org", "pypi" + ".org",
	"crates" + ".io", "rubygems" + ".org", "deb.debian" + ".org", "archive.ubuntu" + ".com", "registry-1.docker" + ".io",
}

// commonParents are directories that often contain checkouts and that texts
// mention for other reasons.
var commonParents = []string{"/", "/app", "/home", "/opt", "/root", "/src", "/tmp", "/usr/src", "/var/tmp"}

// CheckText checks any text file. It refuses marks of unfinished work and of
// merges, package registries, and paths of the machine on which the module is
// checked out at root.
func CheckText(root, name string, content []byte) []string {
	var findings []string
	find := func(offset int, format string, args ...any) {
		line := bytes.Count(content[:offset], []byte("\n")) + 1
		findings = append(findings, fmt.Sprintf("%s:%d: %s", name, line, fmt.Sprintf(format, args...)))
	}
	if leftovers.mayMatch(content) {
		for _, at := range leftovers.FindAllIndex(content, -1) {
			find(at[0], "%s: finish it or drop it", content[at[0]:at[1]])
		}
	}
	if mergeMarks.mayMatch(content) {
		for _, at := range mergeMarks.FindAllIndex(content, -1) {
			find(at[0], "the mark of a merge: decide which text stays")
		}
	}
	for _, host := range registries {
		if at := bytes.Index(content, []byte(host)); at >= 0 {
			find(at, "names the package registry %s", host)
		}
	}
	local := filepath.Dir(root) + "/"
	for _, common := range commonParents {
		if filepath.Clean(local) == common {
			local = root // too common to mean anything, unlike the checkout itself
		}
	}
	if at := bytes.Index(content, []byte(local)); at >= 0 {
		find(at, "names %s, a path of this machine", local)
	}
	return findings
}

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// CheckLinks refuses relative links of a Markdown file that lead nowhere.
func CheckLinks(root, name string, content []byte) []string {
	var findings []string
	for _, match := range markdownLink.FindAllSubmatch(content, -1) {
		target, err := url.Parse(string(match[1]))
		if err == nil && (target.IsAbs() || target.Path == "") {
			continue
		}
		if err == nil {
			file := path.Join(path.Dir(name), target.Path)
			_, err = os.Stat(filepath.Join(root, filepath.FromSlash(file)))
			if strings.HasPrefix(file, "../") {
				err = fmt.Errorf("it leaves the tree")
			}
		}
		if err != nil {
			findings = append(findings, fmt.Sprintf("%s: link %s: %v", name, match[1], err))
		}
	}
	return findings
}

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// CheckGoBlocks refuses Go code in a Markdown file unless it is an excerpt of
// one of the sources, because code that is not compiled does not stay true.
// Indentation does not matter: the sources are as [Unindent] returns them.
func CheckGoBlocks(name string, content []byte, sources []string) []string {
	var findings []string
	for n, match := range goBlock.FindAllSubmatch(content, -1) {
		block := Unindent(string(match[1]))
		if !slices.ContainsFunc(sources, func(s string) bool { return strings.Contains(s, block) }) {
			findings = append(findings, fmt.Sprintf("%s: Go block %d is in no example; quote a compiled one", name, n+1))
		}
	}
	return findings
}

// Unindent returns the lines of text without the space around them.
func Unindent(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}

var consideredRow = regexp.MustCompile("(?m)^\\| `((?:[a-z0-9]+/)*internal/[a-z0-9]+)` \\|")

// CheckConsidered compares the packages directly below a directory internal with
// the rows of the tables in docs/decisions.md that say which library was
// considered for each.
func CheckConsidered(document []byte, packages []string) []string {
	var rows, findings []string
	for _, match := range consideredRow.FindAllSubmatch(document, -1) {
		rows = append(rows, string(match[1]))
	}
	for _, p := range packages {
		if !slices.Contains(rows, p) {
			findings = append(findings, fmt.Sprintf("docs/decisions.md does not say which library was considered for %s: add a row", p))
		}
	}
	for _, r := range rows {
		if !slices.Contains(packages, r) {
			findings = append(findings, fmt.Sprintf("docs/decisions.md has a row for %s, which is not there: delete the row", r))
		}
	}
	return findings
}

var listedPackages = regexp.MustCompile(`(?m)^ *([a-z0-9/]+(?:, [a-z0-9/]+)*)(?:  |$)`)

// CheckMap refuses packages that docs/architecture.md does not list at the
// beginning of a line. It compares the last elements of their paths.
func CheckMap(document []byte, packages []string) []string {
	listed := map[string]bool{}
	for _, match := range listedPackages.FindAllSubmatch(document, -1) {
		for name := range strings.SplitSeq(string(match[1]), ", ") {
			listed[path.Base(name)] = true
		}
	}
	var findings []string
	for _, p := range packages {
		if !listed[path.Base(p)] {
			findings = append(findings, fmt.Sprintf("docs/architecture.md does not list the package %s: add a line to it", p))
		}
	}
	return findings
}

// stilted are words that make a sentence hard to read at the first attempt. The
// words are split here so that this file passes its own rule.
var stilted = pattern{
	regexp.MustCompile(`(?i)\b(who` + `ever|whom` + `ever|what` + `ever|there` + `of|there` + `in|hen` + `ce|such a ` + `one|(?:is|are|was|were|be|been) told of|where` + `by|there` + `by)\b`),
	[]string{"ever", "there", "hen" + "ce", "such a ", "told of", "where"},
}

// negated finds a noun after "is no", where English has "is not a".
var negated = pattern{regexp.MustCompile(`(?i)([a-z]+"?) (?:is|are) no ([a-z]+)`), []string{" no "}}

// negations are the words before and after "is no" with which it is idiomatic.
var negations = map[string]bool{
	"there": true, "it": true, "this": true,
	"longer": true, "more": true, "less": true, "room": true, "need": true, "way": true, "other": true, "such": true, "better": true, "worse": true,
	"further": true, "one": true, "limit": true,
}

// CheckProse refuses stilted words in a text, or in the comments and string
// literals of a Go file.
func CheckProse(name string, content []byte) []string {
	var findings []string
	for n, line := range strings.Split(string(content), "\n") {
		lower := bytes.ToLower([]byte(line))
		if stilted.mayMatch(lower) {
			if word := stilted.FindString(line); word != "" {
				findings = append(findings, fmt.Sprintf("%s:%d: %q: say it in plain words", name, n+1, word))
			}
		}
		if !negated.mayMatch(lower) {
			continue
		}
		for _, m := range negated.FindAllStringSubmatch(line, -1) {
			if !negations[strings.ToLower(m[1])] && !negations[strings.ToLower(m[2])] {
				findings = append(findings, fmt.Sprintf("%s:%d: %q: write \"is not a %s\"", name, n+1, m[0], m[2]))
			}
		}
	}
	return findings
}
