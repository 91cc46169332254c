package apidocs

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

var (
	// forGo finds sentences that matter only to programs in Go.
	forGo = regexp.MustCompile(`goroutine|concurrently|nobody may change|[Nn]othing changes what|the slice|JSON methods|The methods|is a (?:plain )?value\b|[Ii]ts decoder|\*[A-Z]|^See (?:[a-z]+\.)?[A-Z]\w*(?:\.[A-Z]\w*)?\.$`)
	// see finds references to symbols in Go. A page has a name in lower case.
	see = regexp.MustCompile(`[;:,]? \(?see (?:[a-z]+\.)?[A-Z]\w*(?:\.[A-Z]\w*)?\)?([.;:]|$)`)
	// limit finds the names of constants that may be numbers.
	limit = regexp.MustCompile(`(?:[A-Za-z]+\.)?\b(?:Max|Min|Default)[A-Z]\w*`)
	// zeros finds what Go calls a zero value.
	zeros   = regexp.MustCompile(`\b(?:[Tt]he|[Ii]ts) zero [A-Za-z]+`)
	article = regexp.MustCompile(`\b[Aa]n? $|\b[Tt]he $`)
	missing = regexp.MustCompile(`\b(?:nil|zero)\b`)
)

// inJSON is the comment on a struct, or on its field of this name, for readers
// who have JSON before them: fields have the names of their members, limits are
// numbers, what is nil or zero in Go is absent, and what only a program in Go
// can use is left out.
func (t *types) inJSON(doc string, of reflect.Type, field string) string {
	var kept []string
	for _, s := range sentences(doc) {
		if !forGo.MatchString(s) {
			kept = append(kept, s)
		}
	}
	doc = see.ReplaceAllString(strings.Join(kept, " "), "$1")
	for _, f := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			doc = renamed(doc, f.Name, name, f.Name == field)
		}
	}
	pkg, _, _ := strings.Cut(of.String(), ".")
	doc = limit.ReplaceAllStringFunc(doc, func(name string) string {
		return cmp.Or(t.limits[name], t.limits[pkg+"."+name], name)
	})
	doc = zeros.ReplaceAllStringFunc(doc, func(s string) string {
		noun := s[strings.LastIndex(s, " ")+1:]
		if noun == "value" {
			noun = "one"
		}
		if unicode.IsUpper(rune(s[0])) {
			return "An empty " + noun
		}
		return "an empty " + noun
	})
	return missing.ReplaceAllString(doc, "absent")
}

// renamed gives a field the name of its member. A name of one word may also be a
// word of English, or a type: at the beginning of a sentence it is the field only
// if it is the field's own comment or says what the field is, and after an
// article it is not.
func renamed(doc, field, member string, own bool) string {
	single := field == strings.ToUpper(field) || strings.Trim(field[1:], "abcdefghijklmnopqrstuvwxyz") == ""
	var b strings.Builder
	rest := doc
	for {
		i := strings.Index(rest, field)
		if i < 0 {
			b.WriteString(rest)
			return b.String()
		}
		before, after := b.String()+rest[:i], rest[i+len(field):]
		is := !wordEnds(before) && !wordBegins(after)
		if is && single {
			word, _, _ := strings.Cut(strings.TrimPrefix(after, " "), " ")
			begins := before == "" || strings.HasSuffix(before, ". ")
			switch {
			case begins:
				is = own && before == "" || strings.Contains(" and is are says say was were has have holds names limits bounds counts ", " "+word+" ")
			case article.MatchString(before):
				is = false
			}
		}
		b.WriteString(rest[:i])
		if is {
			b.WriteString("`" + member + "`")
		} else {
			b.WriteString(field)
		}
		rest = after
	}
}

// wordEnds reports whether s ends within a name, or with the name of what has
// the next one.
func wordEnds(s string) bool {
	return s != "" && (strings.ContainsRune("._`\"", rune(s[len(s)-1])) || isLetter(s[len(s)-1]))
}

func wordBegins(s string) bool {
	return s != "" && (isLetter(s[0]) || s[0] == '`' || s[0] == '"' || len(s) > 1 && s[0] == '.' && isLetter(s[1]))
}

func isLetter(c byte) bool {
	return c == '_' || unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c))
}

// sentences splits a text after each full stop that a capital follows.
func sentences(text string) (list []string) {
	start := 0
	for i := 0; i+2 < len(text); i++ {
		if text[i] == '.' && text[i+1] == ' ' && unicode.IsUpper(rune(text[i+2])) {
			list = append(list, text[start:i+1])
			start = i + 2
		}
	}
	return append(list, text[start:])
}

// readLimits reads the values of the constants that are numbers, by names such
// as "executor.MaxReasonBytes", from the text of the exported API.
func readLimits(root string) (map[string]string, error) {
	limits := map[string]string{}
	for _, pkg := range packages {
		file, err := os.Open(filepath.Join(root, "api", pkg+".txt"))
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			f := strings.Fields(lines.Text())
			if len(f) < 4 || f[0] != "const" {
				continue
			}
			value := f[len(f)-1]
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				continue
			}
			switch {
			case f[2] == "time.Duration" && n%int64(time.Minute) == 0:
				value = fmt.Sprintf("%d min", n/int64(time.Minute))
			case f[2] == "time.Duration":
				value = fmt.Sprintf("%g s", time.Duration(n).Seconds())
			case !strings.HasSuffix(f[1], "Bytes"):
			case n >= 1<<20 && n%(1<<20) == 0:
				value = fmt.Sprintf("%d MiB", n>>20)
			case n >= 1<<10 && n%(1<<10) == 0:
				value = fmt.Sprintf("%d KiB", n>>10)
			default:
				value += " bytes"
			}
			limits[pkg+"."+f[1]] = value
		}
	}
	return limits, nil
}
