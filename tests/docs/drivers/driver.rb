require "./verify"

STDIN.each_line do |line|
  secret, head, body = line.chomp.split(/ /, 3).map { |hex| [hex].pack("H*") }
  headers = head.force_encoding("UTF-8").split("\n").to_h { |one| one.split(": ", 2) }
  puts Signpost.verify(secret, headers, body) ? 1 : 0
end
