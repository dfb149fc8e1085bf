import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.function.UnaryOperator;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Verify {
  static final long TOLERANCE_S = 300;

  /** `header` returns null for a missing one (HttpServletRequest::getHeader); `body` is raw. */
  public static boolean verify(String secret, UnaryOperator<String> header, byte[] body)
      throws GeneralSecurityException {
    if (secret == null || secret.isBlank() || secret.strip().equals("whsec_")) {
      return false; // not set: anyone could sign with it
    }
    List<String> times = new ArrayList<>(), given = new ArrayList<>();
    String gateway = header.apply("X-Gateway-Signature");
    String recording = header.apply("X-Recording-Signature");
    if (gateway != null) { // t=...,v1=...
      for (String part : gateway.split(",")) {
        String[] pair = part.strip().split("=", 2);
        if (pair.length == 2 && pair[0].equals("t")) times.add(pair[1]);
        if (pair.length == 2 && pair[0].equals("v1")) given.add(pair[1]);
      }
    } else if (recording != null && recording.startsWith("sha256=")) {
      times.add(String.valueOf(header.apply("X-Recording-Timestamp")));
      given.add(recording.substring("sha256=".length()));
    }
    if (times.size() != 1 || !times.get(0).matches("[0-9]{1,12}")) return false;
    long age = System.currentTimeMillis() / 1000 - Long.parseLong(times.get(0));
    if (Math.abs(age) > TOLERANCE_S) return false;
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
    mac.update((times.get(0) + ".").getBytes(StandardCharsets.UTF_8));
    byte[] expected = HexFormat.of().formatHex(mac.doFinal(body)).getBytes(StandardCharsets.UTF_8);
    boolean fits = false;
    for (String value : given) {
      fits |= MessageDigest.isEqual(expected, value.getBytes(StandardCharsets.UTF_8));
    }
    return fits;
  }
}
