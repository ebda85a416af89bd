// Package config reads the configuration of a node.
//
// [Config] defines every key once; [Keys] derives flag, environment variable and YAML
// form from it. [Load] merges them: flag over environment over file over default.
//
// It promises:
//
//  1. Nothing is guessed: an unknown key, a value outside its limits, a duplicate or an
//     impossible combination is an [Error] with key, value, place and limit, and all of
//     them are reported at once.
//  2. Passwords, tokens and secret paths are hidden in every text that it makes.
//  3. A .properties file of the Java server is translated, or refused with the place
//     (legacy.go, jdbc.go).
//
// It opens nothing but the files that the configuration names.
package config
