"""The dispatcher: claims what is due, sends it, and records the results.

    dispatcher       the loop of one run; from here all others are called
    leases           the lease of a run, its fencing token; expiry of dead runs
    queues           the queues that this run has leased, each with a window
    claims           due deliveries become claims, and claims become requests
    signer           the headers of a request
    sender           the event loop in a second thread that makes the requests
    results          the results of requests become rows
    decisions        what a result means for its delivery, and what its receiver asks for
    retry            the pause before the next attempt
    attempt_details  what is stored of an attempt for people
    shares           how many places each owner may take
    sql/             the frequent statements: queues, deliveries with their attempts, endpoints

A round is: lease due queues, claim, submit to the sender, record the results of the round before,
receive results. Only the dispatcher's thread uses the database; only the sender's uses the network.
"""
