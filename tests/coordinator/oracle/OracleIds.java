package org.apache.kafka.coordinator.group;

import java.nio.ByteBuffer;
import java.security.Provider;
import java.security.SecureRandomSpi;
import java.security.Security;

/** Makes java.util.UUID.randomUUID give ids that the driver chose: a provider of random bytes placed before all others. */
final class OracleIds {
    private static long high;
    private static long low;

    private OracleIds() {
    }

    static void install() {
        Provider provider = new Provider("Oracle", "1", "chosen ids") { };
        provider.put("SecureRandom.Chosen", Chosen.class.getName());
        Security.insertProviderAt(provider, 1);
    }

    /** The next id; each further one counts up from it. */
    static void next(long first, long second) {
        high = first;
        low = second;
    }

    public static final class Chosen extends SecureRandomSpi {
        @Override
        protected void engineSetSeed(byte[] seed) {
        }

        @Override
        protected void engineNextBytes(byte[] bytes) {
            if (bytes.length == 16) {
                ByteBuffer.wrap(bytes).putLong(high).putLong(low++);
            }
        }

        @Override
        protected byte[] engineGenerateSeed(int count) {
            return new byte[count];
        }
    }
}
