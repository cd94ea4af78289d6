package subscriptions

// ClaimDue is how a worker finds what is due.
const ClaimDue = claimDue
