import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Scanner;

public class Driver {
  public static void main(String[] arguments) throws Exception {
    Scanner lines = new Scanner(System.in);
    while (lines.hasNextLine()) {
      String[] fields = lines.nextLine().split(" ", 3);
      Map<String, String> headers = new HashMap<>();
      for (String one : text(fields[1]).split("\n")) {
        String[] pair = one.split(": ", 2);
        headers.put(pair[0], pair.length == 2 ? pair[1] : "");
      }
      byte[] body = HexFormat.of().parseHex(fields[2]);
      System.out.println(Verify.verify(text(fields[0]), headers::get, body) ? 1 : 0);
    }
  }

  static String text(String hex) {
    return new String(HexFormat.of().parseHex(hex), StandardCharsets.UTF_8);
  }
}
