"""The dispatcher: claims what is due, sends it, and records the results.

    dispatcher  the loop: claim, send, record, tick; from here all others are called
    leases      its lease, the fencing token; expiry of the dead
    queues      the queues that it has leased, each with a window
    claims      due deliveries become claims, and claims become requests
    signer      body and headers of a request
    sender      the event loop in a second thread that makes the requests
    results     what results of requests mean, and the rows that they become
    shares      how many places each owner may take
    notify      how a dispatcher learns of work
    sql         the statements that run for each delivery

Only the dispatcher's thread uses the database; only the sender's uses the network.
"""
