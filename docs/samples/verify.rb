require "openssl"

module Signpost
  # `headers` is a hash, or the headers of a Rails request; `body` is request.raw_post.
  def self.verify(secret, headers, body, tolerance: 300)
    return false if ["", "whsec_"].include?(secret.to_s.strip) # not set: anyone could sign with it

    times, given = [], []
    if (signature = headers["X-Gateway-Signature"]) # t=...,v1=...
      pairs = signature.split(",").map { |part| part.strip.split("=", 2) }
      times = pairs.select { |key, _| key == "t" }.map { |_, value| value.to_s }
      given = pairs.select { |key, _| key == "v1" }.map { |_, value| value.to_s }
    elsif headers["X-Recording-Signature"].to_s.start_with?("sha256=")
      times = [headers["X-Recording-Timestamp"].to_s]
      given = [headers["X-Recording-Signature"].delete_prefix("sha256=")]
    end
    return false unless times.size == 1 && times.first.match?(/\A[0-9]{1,12}\z/)
    return false if (Time.now.to_i - times.first.to_i).abs > tolerance

    expected = OpenSSL::HMAC.hexdigest("SHA256", secret, "#{times.first}.".b + body.b)
    given.map { |value| OpenSSL.secure_compare(expected, value) }.any?
  end
end
