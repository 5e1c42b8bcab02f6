# Sockets of Java: an echo server with 50 connections.
d=$(mktemp -d); cd $d; cat >E.java <<'J'
import java.io.*; import java.net.*; import java.util.concurrent.*;
public class E { public static void main(String[] a) throws Exception {
  ServerSocket s = new ServerSocket(0, 100, InetAddress.getLoopbackAddress()); ExecutorService p = Executors.newCachedThreadPool();
  Thread t = new Thread(() -> { try { for (int i = 0; i < 50; i++) { Socket c = s.accept(); p.submit(() -> { try (c) { c.getInputStream().transferTo(c.getOutputStream()); } return 0; }); } } catch (IOException e) { e.printStackTrace(); } }); t.start();
  int good = 0; for (int i = 0; i < 50; i++) try (Socket c = new Socket(InetAddress.getLoopbackAddress(), s.getLocalPort())) {
    byte[] b = ("hello " + i).repeat(1000).getBytes(); c.getOutputStream().write(b); c.shutdownOutput(); if (java.util.Arrays.equals(b, c.getInputStream().readAllBytes())) good++; }
  t.join(); p.shutdown(); System.out.println(good); } }
J
javac E.java && java -cp . E; cd /; rm -r $d
