# Reads the headers of recording and of the gateway. Pass a hash, or the headers of a Rails request.
require "openssl"

module Signpost
  def self.verify(secret, headers, body, tolerance: 300)
    return false if ["", "whsec_"].include?(secret.to_s.strip) # not set: anyone could sign with it

    timestamp = headers["X-Recording-Timestamp"].to_s
    digests = [headers["X-Recording-Signature"].to_s.delete_prefix("sha256=")]
    if headers["X-Gateway-Signature"]
      pairs = headers["X-Gateway-Signature"].split(",").map { |part| part.strip.split("=", 2) }
      timestamp = pairs.select { |key, _| key == "t" }.map(&:last).first.to_s
      digests = pairs.select { |key, _| key == "v1" }.map { |_, value| value.to_s }
    end
    return false unless timestamp.match?(/\A[0-9]{1,12}\z/)
    return false if (Time.now.to_i - timestamp.to_i).abs > tolerance

    expected = OpenSSL::HMAC.hexdigest("SHA256", secret, "#{timestamp}.".b + body.b)
    digests.map { |digest| OpenSSL.secure_compare(expected, digest) }.any?
  end
end
