package stripetest

import "reflect"

// previous is what Stripe puts into previous_attributes: the old values of what changed.
// Of an object inside only what changed is told, a list is told whole.
func previous(before, after map[string]any) map[string]any {
	out := map[string]any{}
	for key, old := range before {
		now, there := after[key]
		if there && reflect.DeepEqual(old, now) {
			continue
		}
		oldMap, isMap := old.(map[string]any)
		nowMap, stillMap := now.(map[string]any)
		if isMap && stillMap {
			out[key] = previous(oldMap, nowMap)
			continue
		}
		out[key] = old
	}
	for key := range after {
		if _, was := before[key]; !was {
			out[key] = nil
		}
	}
	return out
}
