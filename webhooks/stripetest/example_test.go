package stripetest_test

import (
	"fmt"
	"time"

	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// A subscription is renewed while its card is declined, and recovers three days later.
func ExampleStripe() {
	stripe := stripetest.New(stripetest.Options{Seed: 1})
	pro := stripe.CreatePrice(stripetest.PriceParams{Amount: 2500})
	customer := stripe.CreateCustomer(stripetest.CustomerParams{})
	sub, err := stripe.Subscribe(stripetest.SubscribeParams{Customer: customer.ID, Price: pro.ID})
	if err != nil {
		fmt.Println(err)
		return
	}
	seen := len(stripe.Events())
	for _, payment := range []stripetest.Payment{stripetest.PaymentDeclines, stripetest.PaymentSucceeds} {
		if err := stripe.SetPayment(customer.ID, payment); err != nil {
			fmt.Println(err)
			return
		}
		stripe.Advance(32 * 24 * time.Hour)
		for _, event := range stripe.EventsFrom(seen) {
			if event.Object == "subscription" {
				fmt.Println(event.Created.Format(time.DateTime), event.Type)
			}
			seen++
		}
	}
	truth, err := stripe.Truth(sub.ID, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, period := range truth.Periods {
		fmt.Println(period.Start.Format(time.DateOnly), period.Kind, period.Payment)
	}
	// Output:
	// 2024-08-01 00:00:16 customer.subscription.updated
	// 2024-08-01 01:00:16 customer.subscription.updated
	// 2024-08-04 01:00:16 customer.subscription.updated
	// 2024-09-01 00:00:16 customer.subscription.updated
	// 2024-07-01 created paid
	// 2024-08-01 cycle paid
	// 2024-09-01 cycle paid
}
