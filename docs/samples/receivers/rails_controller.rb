# Rails: post "/hook", to: "signpost#receive"
require_relative "signature"

class SignpostController < ActionController::API # has no CSRF check
  def receive
    body = request.raw_post # the raw bytes, not params
    return head :unauthorized unless Signpost.verify(ENV.fetch("SIGNPOST_SECRET"), request.headers, body)

    event = JSON.parse(body)
    # A model with a unique index on id; an event that is there already is left alone.
    InboxEvent.insert({ id: event["id"], type_name: event["type"], body: body })
    head :no_content
  end
end
