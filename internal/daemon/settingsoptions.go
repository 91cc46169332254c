package daemon

import (
	"fmt"
	"reflect"
	"strings"
)

// A field of settings that sets an option of a package says which one in its tag
// option, such as "manager.Options.Grace". A test compares these tags with the
// options that there are. The tag ends in ",by hand" if the setting is another
// type, or means something else at 0, so that code has to translate it.

// apply sets the options that the settings name and that are in targets, which
// are pointers to structs of options. It panics if a setting has another type
// than its option, which a test finds.
func apply(settings any, targets ...any) {
	for _, s := range optionsOf(reflect.ValueOf(settings).Elem()) {
		for _, target := range targets {
			t := reflect.ValueOf(target).Elem()
			if s.byHand || t.Type().String() != s.owner {
				continue
			}
			field := t.FieldByName(s.option)
			if !field.IsValid() || field.Type() != s.value.Type() {
				panic(fmt.Sprintf("the setting %s has the type %v, which %s.%s has not", s.setting, s.value.Type(), s.owner, s.option))
			}
			field.Set(s.value)
		}
	}
}

// A settingOption is a setting and the option that it sets.
type settingOption struct {
	setting       string
	owner, option string // such as "manager.Options" and "Grace"
	byHand        bool
	value         reflect.Value
}

func optionsOf(v reflect.Value) (list []settingOption) {
	for i := range v.NumField() {
		t := v.Type().Field(i)
		if t.Anonymous {
			list = append(list, optionsOf(v.Field(i))...)
			continue
		}
		tag, byHand := strings.CutSuffix(t.Tag.Get("option"), ",by hand")
		if tag == "" {
			continue
		}
		for option := range strings.SplitSeq(tag, " ") {
			dot := strings.LastIndex(option, ".")
			list = append(list, settingOption{t.Tag.Get("name"), option[:dot], option[dot+1:], byHand, v.Field(i)})
		}
	}
	return list
}
