package config

import (
	"time"

	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// Webhooks say where webhooks may post to, and how they do.
type Webhooks struct {
	AllowedNetworks Networks `mapstructure:"allowed_networks" yaml:"allowed_networks,flow"`
	Schedule        schedule `mapstructure:"schedule" yaml:"schedule,flow"`
	Timeout         duration `mapstructure:"timeout" yaml:"timeout"`
	ConnectTimeout  duration `mapstructure:"connect_timeout" yaml:"connect_timeout"`
	InFlight        int      `mapstructure:"in_flight" yaml:"in_flight"`
	TotalInFlight   int      `mapstructure:"total_in_flight" yaml:"total_in_flight"`
	DisableAfter    duration `mapstructure:"disable_after" yaml:"disable_after"`
	Keep            duration `mapstructure:"keep" yaml:"keep"`
	Proxy           proxyURL `mapstructure:"proxy" yaml:"proxy"`
}

func defaultWebhooks() Webhooks {
	var retries schedule
	for _, d := range dispatch.DefaultSchedule() {
		retries = append(retries, duration(d))
	}
	return Webhooks{
		Schedule:       retries,
		Timeout:        duration(15 * time.Second),
		ConnectTimeout: duration(5 * time.Second),
		InFlight:       8,
		TotalInFlight:  dispatch.DefaultTotalInFlight,
		DisableAfter:   duration(5 * day),
		Keep:           duration(store.DefaultKeepDeliveries),
	}
}

// Guard returns a guard that refuses to post to networks that are not allowed.
func (s Webhooks) Guard() *dispatch.Guard { return dispatch.NewGuard(s.AllowedNetworks) }

func (s Webhooks) check(wrong func(key, format string, args ...any)) {
	within := func(key string, d, least, most duration) bool {
		if d < least || d > most {
			wrong("webhooks."+key, "%v is not between %v and %v", d, least, most)
			return false
		}
		return true
	}
	if len(s.Schedule) == 0 {
		wrong("webhooks.schedule", "it must name at least one duration such as 5s")
	}
	least := duration(day) // that a delivery is kept
	for _, d := range s.Schedule {
		if within("schedule", d, duration(time.Second), duration(30*day)) {
			least += d
		}
	}
	timeout := within("timeout", s.Timeout, duration(time.Second), duration(2*time.Minute))
	if within("connect_timeout", s.ConnectTimeout, duration(100*time.Millisecond), duration(2*time.Minute)) && timeout &&
		s.ConnectTimeout > s.Timeout {
		wrong("webhooks.connect_timeout", "%v is longer than webhooks.timeout, %v, of which it is a part", s.ConnectTimeout,
			s.Timeout)
	}
	if s.InFlight < 1 || s.InFlight > 64 {
		wrong("webhooks.in_flight", "%d is not between 1 and 64", s.InFlight)
	}
	if s.TotalInFlight < 1 || s.TotalInFlight > 65536 {
		wrong("webhooks.total_in_flight", "%d is not between 1 and 65536", s.TotalInFlight)
	}
	within("disable_after", s.DisableAfter, duration(time.Minute), duration(365*day))
	if within("keep", s.Keep, duration(day), duration(3650*day)) && s.Keep < least {
		wrong("webhooks.keep", "%v is too short: with this webhooks.schedule a delivery may be tried for nearly %v", s.Keep,
			least)
	}
}
