package leaf;

import feign.Feign;
import feign.Headers;
import feign.Param;
import feign.RequestLine;
import feign.jackson.JacksonDecoder;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.Callable;
import org.springframework.web.client.HttpStatusCodeException;
import org.springframework.web.client.RestTemplate;

/** Takes IDs with the HTTP clients of Java programs. Arguments: the server's URL and a tag. */
public final class Clients {
  interface Ids {
    @RequestLine("GET /api/segment/get/{tag}")
    Long number(@Param("tag") String tag);

    @RequestLine("GET /api/segment/get/{tag}")
    @Headers("Accept: application/json")
    Long json(@Param("tag") String tag);
  }

  interface Texts {
    @RequestLine("GET /api/segment/get/{tag}")
    String text(@Param("tag") String tag);
  }

  private static final Set<Long> seen = new HashSet<>();
  private static boolean failed;

  public static void main(String[] args) {
    String base = args[0], tag = args[1], url = base + "/api/segment/get/" + tag;
    RestTemplate rest = new RestTemplate();
    Ids ids = Feign.builder().decoder(new JacksonDecoder()).target(Ids.class, base);
    Texts texts = Feign.builder().target(Texts.class, base);

    check("RestTemplate Long", () -> rest.getForObject(url, Long.class));
    check("RestTemplate String", () -> Long.parseLong(rest.getForObject(url, String.class)));
    check("RestTemplate entity", () -> rest.getForEntity(url, Long.class).getBody());
    check("Feign Long", () -> ids.number(tag));
    check("Feign Long as JSON", () -> ids.json(tag));
    check("Feign String", () -> Long.parseLong(texts.text(tag)));
    check("HttpURLConnection", () -> Long.parseLong(get(url, null)));
    check("HttpURLConnection application/*", () -> Long.parseLong(get(url, "application/*")));
    check("HttpURLConnection text/plain", () -> Long.parseLong(get(url, "text/plain")));
    check("java.net.http", () -> Long.parseLong(HttpClient.newHttpClient()
        .send(HttpRequest.newBuilder(URI.create(url)).build(), HttpResponse.BodyHandlers.ofString()).body()));
    check("a slash at the end", () -> rest.getForObject(url + "/", Long.class));
    check("a parameter", () -> rest.getForObject(url + "?trace=7", Long.class));
    refused("an unknown tag", () -> rest.getForObject(base + "/api/segment/get/nosuch", Long.class));
    System.exit(failed ? 1 : 0);
  }

  private static void check(String name, Callable<Long> client) {
    try {
      Long id = client.call();
      report(name, id != null && id > 0 && seen.add(id), "ID " + id);
    } catch (Exception e) {
      report(name, false, e.toString());
    }
  }

  private static void refused(String name, Callable<Long> client) {
    try {
      report(name, false, "ID " + client.call());
    } catch (HttpStatusCodeException e) {
      report(name, true, "status " + e.getRawStatusCode());
    } catch (Exception e) {
      report(name, false, e.toString());
    }
  }

  private static void report(String name, boolean ok, String what) {
    failed |= !ok;
    System.out.println((ok ? "ok    " : "FAIL  ") + name + ": " + what);
  }

  private static String get(String url, String accept) throws Exception {
    HttpURLConnection c = (HttpURLConnection) new URL(url).openConnection();
    if (accept != null) {
      c.setRequestProperty("Accept", accept);
    }
    try (InputStream in = c.getInputStream()) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }
}
