package config

import "reflect"

// Changed returns the names of the keys whose values differ. A key that names the file of
// another key's value is not one of them; that other key is.
func Changed(now, next Config) (names []string) {
	was, is := reflect.ValueOf(now), reflect.ValueOf(next)
	for _, k := range Keys() {
		if k.content == "" && !reflect.DeepEqual(was.FieldByIndex(k.index).Interface(), is.FieldByIndex(k.index).Interface()) {
			names = append(names, k.Name)
		}
	}
	return names
}
