package main

import (
	"context"
	"strings"
	"time"

	"github.com/weirproxy/weir/pkg/admin"
	"github.com/weirproxy/weir/pkg/bootstrap"
	"github.com/weirproxy/weir/pkg/config"
)

// reloads takes the policy of changed files to what runs, whole or not at all, until ctx ends, one reload at a time.
func (w *weir) reloads(ctx context.Context) { w.watch.run(ctx, w.hangup, w.reload) }

func (w *weir) reload() {
	next, changed, err := bootstrap.Reload(w.policy, w.files)
	switch {
	case err != nil:
		w.logFaults("reload refused, the policy stays as it was", config.Faults(err))
		w.refused.Add(1)
	case len(changed) == 0:
		w.log.Debug("reload: nothing of the policy changed")
		w.unchanged.Add(1)
	default:
		w.swap(next)
		w.log.Info("policy reloaded", "changed", strings.Join(changed, ", "))
		w.ok.Add(1)
	}
}

// swap has every part take the policy. The series come first: a request may end in a new class at once.
func (w *weir) swap(next *bootstrap.Bootstrap) {
	now := time.Now()
	var classes []string
	for _, c := range next.Policy.Route.Classes {
		classes = append(classes, c.Name)
	}
	w.adm.Classes(classes)
	w.edge.Configure(next.Policy.Edge)
	for name, one := range w.routers {
		one.Configure(now, next.Policy.Route)
		w.edge.Wake(name) // those held may go now
	}
	w.policy = next
	w.loaded.Store(now.UnixNano())
}

// count puts the reloads on the metrics page.
func (w *weir) count() {
	w.adm.Counters("weir_reloads_total", "Reloads of the policy. unchanged: the files said the same; refused: a fault, or a change that needs a restart.", []string{"result"}, func(emit admin.Emit) {
		emit(float64(w.ok.Load()), "ok")
		emit(float64(w.unchanged.Load()), "unchanged")
		emit(float64(w.refused.Load()), "refused")
	})
	w.adm.Gauges("weir_policy_loaded_timestamp_seconds", "When the policy in force was loaded, in Unix time.", nil, func(emit admin.Emit) {
		emit(time.Duration(w.loaded.Load()).Seconds())
	})
}

// maxFaults is how many faults of one reload, or start, are logged.
const maxFaults = 100

// logFaults logs each fault, and beyond maxFaults how many more there are.
func (w *weir) logFaults(text string, all []error) {
	for i, fault := range all {
		if i == maxFaults {
			w.log.Error(text, "more_faults", len(all)-i)
			break
		}
		w.log.Error(text, "fault", bounded(fault.Error()))
	}
}

// maxFault is the most of a fault's text, in bytes, that is logged: it quotes what stands in the file.
const maxFault = 500

func bounded(text string) string {
	if len(text) <= maxFault {
		return text
	}
	return strings.ToValidUTF8(text[:maxFault], "") + "..."
}
