package main

import (
	"os"
	"path/filepath"
)

// plotRows writes three plots for each workload: TTFT mean and p99, and hit rate, over the load, a curve for each policy,
// medians of the seeds.
func plotRows(dir string, rows []simRow) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	all := group(rows)
	for _, w := range all.workloads() {
		ttft := chart{x: "load, requests/s", log: true}
		mean, p99, hits := ttft, ttft, ttft
		mean.title, mean.y = w+": TTFT mean (simulated)", "seconds"
		p99.title, p99.y = w+": TTFT p99 (simulated)", "seconds"
		hits.title, hits.y, hits.log = w+": prompt tokens found in caches (simulated)", "%", false
		for _, name := range all.policies(w) {
			mean.curves = append(mean.curves, all.curve(w, name, ttftMean))
			p99.curves = append(p99.curves, all.curve(w, name, ttftP99))
			hits.curves = append(hits.curves, all.curve(w, name, hitPercent))
		}
		top := all.curve(w, all.policies(w)[0], ceilingPercent)
		top.name = "ceiling"
		hits.curves = append(hits.curves, top)
		for name, c := range map[string]*chart{"ttft-mean": &mean, "ttft-p99": &p99, "hits": &hits} {
			if err := c.write(filepath.Join(dir, w+"-"+name+".svg")); err != nil {
				return err
			}
		}
	}
	return nil
}
