// Package uptime tells how much time passes, whatever is done to the clock.
package uptime
