package daemon

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parse sets the field from the text of a flag. It returns what would be
// accepted, or "" if the text was.
func (f *field) parse(text string) (want string) {
	switch f.value.Interface().(type) {
	case bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return "want " + f.want()
		}
		f.value.SetBool(v)
	case string:
		if len(f.oneof) > 0 && !slices.Contains(f.oneof, text) {
			return "want " + f.want()
		}
		if text == "" && f.byDefault != "" {
			return "want a text that is not empty; leave the setting out for its default, " + f.byDefault
		}
		f.value.SetString(text)
	case time.Duration:
		v, err := time.ParseDuration(text)
		if err != nil || !f.within(float64(v)) {
			return "want " + f.want()
		}
		f.value.SetInt(int64(v))
	case int, int64:
		v, err := strconv.ParseInt(text, 10, f.value.Type().Bits())
		if err != nil || !f.within(float64(v)) {
			return "want " + f.want()
		}
		f.value.SetInt(v)
	case uint16:
		v, err := strconv.ParseUint(text, 10, 16)
		if err != nil || !f.within(float64(v)) {
			return "want " + f.want()
		}
		f.value.SetUint(v)
	case float64:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || !f.within(v) {
			return "want " + f.want()
		}
		f.value.SetFloat(v)
	case []string:
		var list []string
		if text != "" {
			list = strings.Split(text, ",")
		}
		return f.setList(list)
	case map[string]string:
		pairs := map[string]string{}
		for pair := range strings.SplitSeq(text, ",") {
			name, value, found := strings.Cut(pair, "=")
			if text == "" {
				break
			}
			if _, twice := pairs[name]; !found || name == "" || twice {
				return "want " + f.want()
			}
			pairs[name] = value
		}
		f.value.Set(reflect.ValueOf(pairs))
	default:
		panic(fmt.Sprintf("the setting %s has the type %v, which none may have", f.name, f.value.Type()))
	}
	return ""
}

func (f *field) setList(list []string) (want string) {
	for _, text := range list {
		if text == "" || len(f.oneof) > 0 && !slices.Contains(f.oneof, text) {
			return "want " + f.want()
		}
	}
	f.value.Set(reflect.ValueOf(list))
	return ""
}

// within reports whether v is in the range of the field.
func (f *field) within(v float64) bool {
	if f.accepted == "" {
		return true
	}
	least, most := f.bounds()
	return (least == "" || v >= f.bound(least)) && (most == "" || v <= f.bound(most))
}

func (f *field) bounds() (least, most string) {
	least, most, found := strings.Cut(f.accepted, "..")
	if !found {
		panic("the range of " + f.name + " has no ..")
	}
	return least, most
}

func (f *field) bound(text string) float64 {
	if f.value.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(text)
		if err != nil {
			panic("the range of " + f.name + ": " + err.Error())
		}
		return float64(d)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic("the range of " + f.name + ": " + err.Error())
	}
	return v
}

// want is what would be accepted, such as "a duration from 1s to 10m".
func (f *field) want() string {
	one := strings.Join(f.oneof, ", ")
	switch f.value.Interface().(type) {
	case bool:
		return "true or false"
	case string:
		if one != "" {
			return "one of " + one
		}
		return "a text"
	case time.Duration:
		return "a duration such as 30s or 5m" + f.limits()
	case float64:
		return "a number" + f.limits()
	case []string:
		if one != "" {
			return "a list of " + one
		}
		return "a list of texts"
	case map[string]string:
		return "pairs of a name and a text"
	}
	return "a whole number" + f.limits()
}

func (f *field) limits() string {
	unit := ""
	if f.unit != "" {
		unit = " " + f.unit
	}
	if f.accepted == "" {
		return unit
	}
	least, most := f.bounds()
	switch {
	case most == "":
		return " of at least " + least + unit
	case least == "":
		return " of at most " + most + unit
	}
	return " from " + least + " to " + most + unit
}
