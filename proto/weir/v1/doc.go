// Package weirv1 is the decision record: what weir tells about each request. decision.proto is the contract, and
// make proto generates the rest.
package weirv1
