DROP TABLE cookieless_salts;
